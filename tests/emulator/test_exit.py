"""A process ends as its script says, whatever of the emulator is alive then."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry bad(.param .u64 out) {
.reg .b64 %at; ld.param.u64 %at, [out]; st.global.u32 [%at+4096], 1; ret;
}
.visible .entry count(.param .u64 out) {
.reg .b64 %at; .reg .b32 %i; .reg .pred %p;
ld.param.u64 %at, [out]; mov.u32 %i, 0;
again: add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 100000000; @%p bra again;
st.global.u32 [%at], %i; ret;
}
.visible .entry nothing() { ret; }
"""
HEAD = f"""
import gc, logging, sys, threading, time
import numpy as np
import culaunch as cl
PTX = '''{PTX}'''
"""


def run(script, code=0):
    """Run a script as `python FILE` does; give what it printed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", HEAD + textwrap.dedent(script)],
        check=False,
        env={**os.environ, "CULAUNCH_DRIVER": "emulator", "PYTHONFAULTHANDLER": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    assert "terminate called" not in result.stderr
    return result.stdout + result.stderr


# Where an array may be when the interpreter goes: each of these has crashed.
KEPT = {
    "a global beside a function": "x = cl.to_device(np.ones(4))\ndef f(a): return a",
    "an attribute of a logger": "logging.getLogger('x').workspace = cl.empty(3, 'f4')",
    "an attribute of a module": "np.my_cache = {'k': cl.empty(3, 'f4')}",
    "a cycle": "sys.keep = [cl.empty(1, 'f4')]; sys.keep.append(sys.keep)",
    "a capsule": "sys.keep = cl.empty(3, 'f4').__dlpack__()",
    "a view of another library": "np.kept = np.from_dlpack(cl.empty(3, 'f4'))",
    "after a fault": """
        y = cl.to_device(np.zeros(1, "f4"))
        for call in (lambda: cl.load(PTX.encode())["bad"][1, 2](y), y.numpy):
            try:
                call()
            except cl.DriverError as error:
                sys.kept = error
    """,
    "a destructor that uses it": """
        class Late:
            def __del__(self):
                try:
                    kernel[1, 1]()
                    x.numpy()
                except Exception:
                    pass
        x = cl.to_device(np.ones(4)); kernel = cl.load(PTX.encode())["nothing"]
        np.late = Late(); np.late.itself = np.late
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_an_array_that_outlives_the_emulator(kept):
    run(textwrap.dedent(KEPT[kept]) + "\nraise SystemExit(3)\n", code=3)


@pytest.mark.slow
def test_what_is_released_after_the_emulator_is_released_silently():
    said = run("""
        stream = cl.Stream(); start, end = stream.record(), stream.record()
        held, shared = cl.pinned(3), cl.managed(3)
        np.kept = (cl.Stream(), cl.Event(), cl.pinned(3), cl.managed(3))
        def f(a): return a
    """)
    assert said == ""


@pytest.mark.slow
def test_handlers_at_exit_still_use_the_emulator():
    script = """
        import atexit
        x = cl.to_device(np.arange(4))
        atexit.register(lambda: print("sum", x.numpy().sum()))
    """
    assert "sum 6" in run(script)


THREAD = """
    kernel = cl.load(PTX.encode())["{name}"]
    x = cl.empty(1, "u4")
    started = threading.Event()
    def work():
        while True:
            started.set()
            kernel[1, 1]({arguments})
    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    started.wait()
    time.sleep(0.05)
    print("main ends")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments"), [("nothing", ""), ("count", "x")])
def test_a_daemon_thread_that_launches_on_the_emulator(name, arguments):
    for _ in range(2):
        assert "main ends" in run(THREAD.format(name=name, arguments=arguments))


@pytest.mark.slow
def test_a_daemon_thread_that_copies():
    run("""
        x = cl.to_device(np.zeros(100_000))
        def work():
            while True:
                cl.to_device(x.numpy())
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
    """)
