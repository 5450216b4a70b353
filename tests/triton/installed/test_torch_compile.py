"""A compiled region of PyTorch that calls culaunch: the graph breaks there, and all is right."""

import sys
import textwrap

import pytest

pytestmark = pytest.mark.needs("triton", "torch")

SCRIPT = """
    import sys
    sys.path.insert(0, {folder!r})
    {imports}
    import culaunch.triton
    from culaunch.triton import native
    import torch
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter
    import extra_kernels

    count = CompileCounter()
    kernel = native(extra_kernels.clustered)
    saved = culaunch.triton.compile(
        extra_kernels.clustered, "*fp32:16, *fp32:16, i32", constants={{"BLOCK": 64}},
        arch="sm_80", keep_ptx=True,
    )

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
    try:
        torch.compile(region, backend="eager", fullgraph=True)(x)
    except torch._dynamo.exc.Unsupported as error:
        assert "Launch it in the body of a cl.function" in str(error), error
    else:
        raise AssertionError("one graph")
    print("done")
"""
CALLS = {
    "a native kernel": "kernel[(4,)](y, out, x.numel(), BLOCK=64)",
    "a saved set": "saved[(4,)](y, out, x.numel())",
    "a grid function": "kernel[lambda meta: (256 // meta['BLOCK'],)](y, out, 256, BLOCK=64)",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "imports"),
    list(zip(CALLS.values(), ["import torch", "", "import culaunch.triton, torch"], strict=True)),
    ids=CALLS,
)
def test_a_compiled_region_calls_a_native_kernel(run_python, run_anew, call, imports):
    from pathlib import Path

    folder = str(Path(__file__).parents[1] / "shared")
    run = run_python if imports == "import torch" else run_anew
    done = run(textwrap.dedent(SCRIPT.format(folder=folder, call=call, imports=imports)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


INSTALLED = """
    import sys
    sys.path.insert(0, {folder!r})
    import torch, triton
    import torch.utils._triton
    torch.utils._triton.has_triton = lambda: True  # without a GPU it says no
    import culaunch.triton
    from torch._dynamo.testing import CompileCounter
    from torch.library import triton_op, wrap_triton
    from installed_kernels import add

    culaunch.triton.install()
    configs = [triton.Config({{"BLOCK": 64}}), triton.Config({{"BLOCK": 128}})]
    tuned = triton.autotune(configs, key=["n"])(add)
    chosen = triton.heuristics({{"BLOCK": lambda args: 64}})(add)

    @triton_op("culaunch_tests::add", mutates_args={{}})
    def operator(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        wrap_triton(add)[(2,)](x, y, out, x.numel(), BLOCK=64)
        return out

    def calls(kernel, grid, **more):
        def region(x, y):
            out = torch.zeros_like(x)
            kernel[grid](x * 1, y, out, x.numel(), **more)
            return out + 1
        return region

    lazily = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)
    regions = [
        calls(add, (2,), BLOCK=64), calls(tuned, lazily), calls(chosen, (2,)),
        lambda x, y: operator(x, y) + 1,
    ]
    x, y = torch.arange(100.0), torch.ones(100)
    for region in regions:
        for backend in (CompileCounter(), "aot_eager"):
            compiled = torch.compile(region, backend=backend, fullgraph=True)
            for _ in range(3):
                assert torch.equal(compiled(x, y), x + 2), region
            torch._dynamo.reset()
    found = culaunch.triton.report()
    assert found.triton == 0 and found.native >= 24, str(found)
    print("done")
"""


KEPT = """
    import sys
    sys.path.insert(0, {folder!r})
    import torch
    from torch._dynamo.testing import CompileCounter
    from compiled_program import scale
    from culaunch.triton import install, report

    install()
    compiled = scale[2,](torch.arange(128.0), 128, torch.zeros(128), 64)

    def region(x):
        y = x * 2
        out = torch.empty_like(x)
        compiled[2, 1, 1](y, 128, out, 64, 2.0)
        return out + 1

    count = CompileCounter()
    fast = torch.compile(region, backend=count)
    x = torch.arange(128.0)
    for _ in range(3):
        assert torch.equal(fast(x), 4 * x + 1)
    assert count.frame_count == 2, count.frame_count
    assert (report().native, report().triton) == (4, 0), str(report())
    print("done")
"""


@pytest.mark.slow
def test_a_compiled_region_is_as_it_was_where_every_kernel_is_native(run_python):
    """One graph, though every launch in it is native."""
    from pathlib import Path

    done = run_python(
        textwrap.dedent(INSTALLED.format(folder=str(Path(__file__).parents[1] / "shared")))
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


@pytest.mark.slow
def test_what_a_launch_returned_breaks_the_graph_once(run_python):
    from pathlib import Path

    folder = str(Path(__file__).parents[1] / "shared")
    done = run_python(textwrap.dedent(KEPT.format(folder=folder)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


@pytest.fixture
def run_python(run_after_torch):
    import os

    def run(code):
        return run_after_torch(["-c", code], env={**os.environ, "CULAUNCH_DRIVER": "emulator"})

    return run


@pytest.fixture
def run_anew():
    """Run a program that imports culaunch before torch."""
    import os
    import subprocess

    def run(code):
        return subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True, text=True,
            env={**os.environ, "CULAUNCH_DRIVER": "emulator"},
        )  # fmt: skip

    return run
