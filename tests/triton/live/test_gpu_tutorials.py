"""On a GPU: the tutorials' kernels give, bit for bit, what they give through Triton."""

import contextlib
import contextvars
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.needs("triton", "torch")]

TOLERANCE = {"add": 0, "asin": 1e-5, "layer_norm": 1e-4, "softmax": 1e-5}
NAMES = ["add", "softmax", "dropout", "layer_norm", "attention", "asin", "grouped"]


@pytest.fixture
def tutorials():
    import tutorials

    return tutorials


def own_arch():
    """Return the name of this device for Triton's compiler: from sm_90 on, only its own code."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


@pytest.fixture
def sm_90():
    import torch

    if torch.cuda.get_device_capability()[0] < 9:
        pytest.skip("needs sm_90")


def equal(found, wanted):
    import torch

    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


def close(found, expected, tolerance):
    import torch

    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


@contextlib.contextmanager
def allocating():
    """Let Triton's own launch of a kernel with scratch work, and forget the allocator again."""
    import torch
    import triton

    def allocate(size, alignment, stream):
        return torch.empty(size, dtype=torch.int8, device="cuda")

    triton.set_allocator(allocate)
    yield


@pytest.mark.parametrize("name", NAMES)
def test_same_as_triton(tutorials, name):
    from culaunch.triton import native

    kernel = tutorials.SIMPLE[name]
    run = getattr(tutorials, f"run_{name}")
    ours = native(kernel)
    theirs = run(kernel, "cuda")
    for _ in range(2):  # compiled, and looked up
        equal(run(ours, "cuda"), theirs)
    expected = getattr(tutorials, f"expected_{name}")("cuda")
    if expected is not None:
        close(theirs, expected, TOLERANCE.get(name, 2e-2))


def test_matmul_with_autotune(tutorials):
    from culaunch.triton import native

    ours = native(tutorials.autotuned())
    theirs = tutorials.autotuned()
    wanted = tutorials.run_matmul(theirs, "cuda")
    first = tutorials.run_matmul(ours, "cuda")
    close(first, wanted, 2e-2)
    assert ours.best_config in tutorials.CONFIGS
    assert ours.best_config == next(iter(ours.cache.values()))
    keys = ours._key_count
    equal(tutorials.run_matmul(ours, "cuda"), first)
    equal(tutorials.run_matmul(ours, "cuda"), first)
    assert ours._key_count == keys + 1  # the second call found the choice natively
    close(first, tutorials.expected_matmul("cuda"), 2e-2)
    other = (128, 64, 32)
    found = tutorials.run_matmul(ours, "cuda", other)
    close(found, tutorials.expected_matmul("cuda", other), 2e-2)
    assert len(ours.cache) == 2


def test_matmul_with_the_same_configuration_is_identical(tutorials):
    import triton

    from culaunch.triton import native

    tune = triton.autotune(configs=tutorials.CONFIGS[:1], key=["M", "N", "K"])
    equal(
        tutorials.run_matmul(native(tune(tutorials.matmul_body)), "cuda"),
        tutorials.run_matmul(tune(tutorials.matmul_body), "cuda"),
    )


def test_persistent_matmul_with_tensor_descriptors(tutorials, sm_90):
    from culaunch.triton import native

    wanted = tutorials.run_persistent(tutorials.persistent, "cuda")
    ours = native(tutorials.persistent)
    for _ in range(2):
        equal(tutorials.run_persistent(ours, "cuda"), wanted)
    close(wanted, tutorials.expected_persistent("cuda"), 2e-2)


def test_persistent_matmul_with_autotune_and_a_hook(tutorials, sm_90):
    from culaunch.triton import native

    ours = native(tutorials.autotuned_persistent())
    for _ in range(3):
        found = tutorials.run_persistent(ours, "cuda", tuned=True)
        close(found, tutorials.expected_persistent("cuda"), 2e-2)


def test_scratch_needs_no_allocator(tutorials, sm_90):
    """Triton raises "no allocator was set" here."""
    from culaunch.triton import native

    ours = native(tutorials.copy_tiles)
    found = contextvars.Context().run(tutorials.run_copy_tiles, ours, "cuda")
    equal(found, tutorials.expected_copy_tiles("cuda"))


def test_the_users_allocator_wins(tutorials, sm_90):
    import torch
    import triton

    from culaunch.triton import native

    asked = []

    def allocate(size, alignment, stream):
        asked.append((size, alignment, stream))
        return torch.empty(size, dtype=torch.int8, device="cuda")

    def body():
        triton.set_allocator(allocate)
        return tutorials.run_copy_tiles(native(tutorials.copy_tiles), "cuda")

    equal(contextvars.Context().run(body), tutorials.expected_copy_tiles("cuda"))
    assert len(asked) == 1
    assert asked[0][0] % 6 == 0


def test_in_a_graph(tutorials):
    import torch
    import triton

    from culaunch.triton import native

    kernel = native(tutorials.add)
    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.zeros(1000, device="cuda")
    grid = (triton.cdiv(1000, 256),)
    graph = torch.cuda.CUDAGraph()
    kernel.warmup(x, y, out, 1000, grid=grid, BLOCK=256)  # the compiler must not run in a capture
    kernel[grid](x, y, out, 1000, BLOCK=256)
    out.zero_()
    with torch.cuda.graph(graph):
        kernel[grid](x, y, out, 1000, BLOCK=256)
    assert not out.any()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, x + y)
    x.mul_(3)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, x + y)


def test_on_another_stream(tutorials):
    import torch

    from culaunch.triton import native

    kernel = native(tutorials.add)
    stream = torch.cuda.Stream()
    x = torch.randn(1 << 20, device="cuda")
    out = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        kernel[(1 << 12,)](x, x, out, 1 << 20, BLOCK=256)
    # The default stream does not wait for a stream of PyTorch: the kernel sleeps still.
    stream.synchronize()
    assert torch.equal(out, x + x)


def test_clusters(sm_90):
    import torch
    from extra_kernels import clustered

    from culaunch.triton import native

    x = torch.randn(4096, device="cuda")
    wanted, found = torch.empty_like(x), torch.empty_like(x)
    clustered[(4,)](x, wanted, 4096, BLOCK=1024, num_ctas=2)
    native(clustered)[(4,)](x, found, 4096, BLOCK=1024, num_ctas=2)
    assert torch.equal(found, wanted)


def test_much_shared_memory(tutorials):
    """More than 48 KiB is opted in to."""
    import triton

    from culaunch.triton import native

    config = triton.Config(
        {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP": 4}, num_warps=4, num_stages=4
    )
    tune = triton.autotune(configs=[config], key=["M", "N", "K"])
    sizes = (256, 128, 512)
    kernel = native(tune(tutorials.matmul_body))
    found = tutorials.run_matmul(kernel, "cuda", sizes)
    close(found, tutorials.expected_matmul("cuda", sizes), 5e-2)


def test_programmatic_and_cooperative_launches():
    import torch
    from extra_kernels import clustered

    from culaunch.triton import native

    x = torch.randn(1024, device="cuda")
    out = torch.zeros_like(x)
    kernel = native(clustered)
    if torch.cuda.get_device_capability()[0] >= 9:
        kernel[(4,)](x, out, 1024, BLOCK=256, launch_pdl=True)
        assert torch.equal(out, x * 2)
    out.zero_()
    kernel[(4,)](x, out, 1024, BLOCK=256, launch_cooperative_grid=True)
    assert torch.equal(out, x * 2)


def test_arguments_of_every_kind():
    import torch
    from extra_kernels import every_kind

    from culaunch.triton import native

    x = torch.arange(64, dtype=torch.float32, device="cuda")
    cases = [
        ((3, x), 7, None, 1, 2**40, 0.5, True),
        ((1, x), 16, x, 5, 1, 2, False),
        ((16, x[1:]), 1, None, 2**33, -5, 1e-3, True),
    ]
    ours = native(every_kind)
    for case in cases:
        wanted, found = (torch.zeros(64, dtype=torch.float64, device="cuda") for _ in range(2))
        every_kind[(1,)](wanted, *case, BLOCK=32)
        ours[(1,)](found, *case, BLOCK=32)
        assert torch.equal(found, wanted), case
        assert found.any()


def test_a_failed_launch_says_why(tutorials):
    import torch

    from culaunch import LaunchError
    from culaunch.triton import native

    x = torch.randn(64, device="cuda")
    with pytest.raises(ValueError, match=r"the grid of add is too large.*got \(1, 70000, 1\)"):
        native(tutorials.add)[(1, 70_000)](x, x, x, 64, BLOCK=64)
    with pytest.raises(LaunchError, match="cluster"):
        native(tutorials.add)[(3,)](x, x, x, 64, BLOCK=64, num_ctas=32)


def test_tensors_of_the_host_are_refused(tutorials):
    import torch

    from culaunch.triton import native

    x = torch.randn(64)
    with pytest.raises(ValueError, match=r"'x_ptr' of add.* must be in the memory"):
        native(tutorials.add)[(1,)](x, x, x, 64, BLOCK=64)


@pytest.mark.multi_gpu
def test_two_devices(tutorials):
    import torch

    from culaunch.triton import native

    ours = native(tutorials.add)
    current = torch.cuda.current_device()  # JAX, where it began in this process, left its last one
    for device in ("cuda:0", "cuda:1", "cuda:0"):
        equal(tutorials.run_add(ours, device), tutorials.expected_add(device))
        with torch.cuda.device(device):
            equal(tutorials.run_add(ours, device), tutorials.expected_add(device))
    x, y = torch.ones(8, device="cuda:0"), torch.ones(8, device="cuda:1")
    with pytest.raises(ValueError, match="all arrays of a call must be on one device"):
        ours[(1,)](x, y, x, 8, BLOCK=16)
    assert torch.cuda.current_device() == current


def test_a_saved_set_runs_without_triton(tutorials, tmp_path):

    import culaunch.triton as ct

    kernels = ct.compile(
        tutorials.add,
        ["*fp32:16, *fp32:16, *fp32:16, i32", "*fp32, *fp32, *fp32, i32"],
        arch=[own_arch(), "compute_80"],
        constants={"BLOCK": 256},
    )
    path = tmp_path / "add.culib"
    kernels.save(path)
    program = f"""
import sys
sys.modules["triton"] = None  # as if it were not installed
import torch
from culaunch.triton import KernelSet
add = KernelSet.load({str(path)!r})
x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
for a, b in ((x, y), (x[1:], y[1:])):
    out = torch.empty_like(a)
    add[lambda meta: (-(-meta["n"] // meta["BLOCK"]),)](a, b, out, len(a))
    assert torch.equal(out, a + b)
print(add._key_count)
"""
    source = os.path.dirname(os.path.dirname(ct.__file__))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": source}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2"


def test_ptx_alone_runs_on_a_newer_device(tutorials):
    import culaunch.triton as ct

    kernels = ct.compile(
        tutorials.add, "*fp32:16, *fp32:16, *fp32:16, i32", arch="compute_80",
        constants={"BLOCK": 256},
    )  # fmt: skip
    equal(tutorials.run_add(kernels, "cuda"), tutorials.expected_add("cuda"))


def test_from_compiled_and_from_cache(tutorials, tmp_path, monkeypatch):
    import json

    import torch

    import culaunch.triton as ct

    x, y = torch.randn(1000, device="cuda"), torch.randn(1000, device="cuda")
    out = torch.empty_like(x)
    compiled = tutorials.add[(4,)](x, y, out, 1000, BLOCK=256)
    out.zero_()
    ct.from_compiled(compiled)[(4,)](x, y, out, 1000)
    assert torch.equal(out, x + y)
    (tmp_path / "add.cubin").write_bytes(compiled.asm["cubin"])
    metadata = {**compiled.metadata._asdict(), "target": vars(compiled.metadata.target)}
    (tmp_path / "add.json").write_text(json.dumps(metadata))
    out.zero_()
    kernel = ct.from_cache(tmp_path, "*fp32:16, *fp32:16, *fp32:16, i32")
    kernel[(4,)](x, y, out, 1000)
    assert torch.equal(out, x + y)


def test_launch_hooks_are_called_while_installed(tutorials):
    import torch
    from triton import knobs

    from culaunch.triton import native

    x = torch.randn(64, device="cuda")
    ours = native(tutorials.add)
    ours[(1,)](x, x, x.clone(), 64, BLOCK=64)
    seen = []

    def enter(metadata):
        seen.append(metadata.get()["name"])

    chain = knobs.runtime.launch_enter_hook
    if hasattr(chain, "add"):
        chain.add(enter)
    else:
        monkey = pytest.MonkeyPatch()
        monkey.setattr(knobs.runtime, "launch_enter_hook", enter)
    try:
        ours[(1,)](x, x, x.clone(), 64, BLOCK=64)
    finally:
        if hasattr(chain, "add"):
            chain.remove(enter)
        else:
            monkey.undo()
    ours[(1,)](x, x, x.clone(), 64, BLOCK=64)
    assert seen == ["add"]


@pytest.mark.needs("gcc")
def test_the_c_that_is_written(tutorials, tmp_path):
    import ctypes
    import importlib.util
    from pathlib import Path

    import torch

    import culaunch.triton as ct

    kernels = ct.compile(
        tutorials.dropout, "*fp32:16, *fp32:16, i32, fp32, i32", arch=own_arch(),
        constants={"BLOCK": 128},
    )  # fmt: skip
    source, _ = kernels.write_c(tmp_path / "dropout.c")
    headers = [
        header.parent
        for place in importlib.util.find_spec("nvidia").submodule_search_locations
        for header in Path(place).glob("**/cuda.h")
    ]
    library = tmp_path / "dropout.so"
    command = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{headers[0]}", "-o", library]
    subprocess.run([*command, source, "-lpthread"], check=True)
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    x = tutorials.random(300, device="cuda")
    out = torch.empty_like(x)
    launch = ctypes.CDLL(str(library)).dropout
    launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 3, ctypes.c_void_p,
                       *[ctypes.c_uint64] * 2, ctypes.c_int64, ctypes.c_float,
                       ctypes.c_int64]  # fmt: skip
    stream = torch.cuda.current_stream().cuda_stream
    assert launch(stream, 3, 1, 1, None, x.data_ptr(), out.data_ptr(), 300, 0.5, 123) == 0
    equal([out], tutorials.run_dropout(tutorials.dropout, "cuda"))


def test_the_benchmark_runs(tmp_path):
    import culaunch as cl

    script = os.path.join(os.path.dirname(__file__), "../../../benchmarks/triton_dispatch.py")
    folders = [os.path.dirname(os.path.dirname(cl.__file__)), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, script, "--quick", "--output", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "missing" not in done.stdout, done.stdout
