"""A process that is forked while another thread compiles launches its own kernels."""

import textwrap
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.needs("triton", "torch")]

PROGRAM = """
    import os, signal, sys, threading
    sys.path.insert(0, {folder!r})
    import torch, triton
    import culaunch as cl
    import culaunch.triton
    from installed_kernels import add, scaled

    culaunch.triton.install()
    active = triton.runtime.driver.active
    process = os.getpid()
    is_inside, may_go_on = threading.Event(), threading.Event()

    def wait(**_):
        if os.getpid() == process:
            is_inside.set()
            may_go_on.wait()

    def launch(kernel, n):
        x, out = torch.arange(100.0), torch.zeros(100)
        kernel[(2,)](x, out, 100, BLOCK=64)
        assert torch.equal(out, 2 * x)

    @cl.function
    def slow(x):
        if threading.current_thread() is not threading.main_thread():
            wait()
        return cl.empty_like(x)

    triton.knobs.runtime.jit_cache_hook = wait
    for work in (lambda: launch(scaled, 100), lambda: slow(torch.ones(4))):
        is_inside.clear(), may_go_on.clear()
        thread = threading.Thread(target=work)
        thread.start()
        is_inside.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends it, if it waits for what its parent has
            launch(scaled, 100)
            assert slow(torch.ones(4)).shape == (4,)
            assert triton.runtime.driver.active is active
            print(culaunch.triton.report().native, flush=True)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        may_go_on.set()
        thread.join()
        assert status == 0, status
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_forked_while_another_thread_compiles(run_after_torch, emulator):
    program = textwrap.dedent(PROGRAM.format(folder=str(Path(__file__).parents[1] / "shared")))
    done = run_after_torch(["-W", "ignore", "-c", program], timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n2\n"
