"""A compiled region of PyTorch that calls culaunch: the graph breaks there, and all is right."""

import sys
import textwrap

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

SCRIPT = """
    import sys
    sys.path.insert(0, {folder!r})
    {imports}
    import culaunch as cl
    from culaunch.triton import native
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter
    import extra_kernels

    count = CompileCounter()
    kernel = native(extra_kernels.clustered)

    def region(x):
        y = x * 2
        out = torch.empty_like(x)
        {call}
        return out + 1

    compiled = torch.compile(region, backend=count)
    x = torch.arange(256.0)
    for _ in range(3):
        assert torch.equal(compiled(x), 4 * x + 1)
    assert count.frame_count == 2, count.frame_count
    print("done")
"""
CALLS = {
    "a native kernel": "kernel[(4,)](y, out, x.numel(), BLOCK=64)",
    "a grid function": "kernel[lambda meta: (256 // meta['BLOCK'],)](y, out, 256, BLOCK=64)",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "imports"),
    list(zip(CALLS.values(), ["import torch", "import culaunch.triton, torch"], strict=True)),
    ids=CALLS,
)
def test_a_compiled_region_calls_a_native_kernel(run_python, call, imports):
    from pathlib import Path

    folder = str(Path(__file__).parent)
    done = run_python(textwrap.dedent(SCRIPT.format(folder=folder, call=call, imports=imports)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


@pytest.fixture
def run_python():
    import os
    import subprocess

    def run(code):
        return subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, text=True,
            env={**os.environ, "CULAUNCH_DRIVER": "emulator"},
        )  # fmt: skip

    return run
