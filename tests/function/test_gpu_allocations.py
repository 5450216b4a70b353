"""Allocations of a function for torch on a GPU, from torch's own allocator."""

from __future__ import annotations

import gc

import pytest

import culaunch as cl

pytestmark = [pytest.mark.gpu, pytest.mark.needs("torch")]


@cl.function
def make(x, rows: int, columns: int, dtype: str):
    return cl.empty((rows, columns), dtype, like=x)


@pytest.mark.parametrize(
    "name",
    ["bool", "uint8", "int16", "int64", "uint32", "float16", "bfloat16", "float32", "float64",
     "complex64", "float8_e4m3fn", "float8_e5m2"],
)  # fmt: skip
def test_of_every_type(name):
    import torch

    dtype = getattr(torch, name)
    x = torch.zeros(2, device="cuda")
    for _ in range(3):
        made = make(x, 3, 5, name)
        assert (made.dtype, made.shape, made.stride()) == (dtype, (3, 5), (5, 1))
        assert (made.device, made.storage_offset()) == (x.device, 0)
        assert made.untyped_storage().nbytes() == 15 * dtype.itemsize
        assert type(made) is torch.Tensor
        assert made.untyped_storage().resizable()
        made.zero_()
    assert make(x, 0, 5, name).shape == (0, 5)
    with torch.inference_mode():
        assert make(x, 1, 2, name).is_inference()


def test_its_memory_is_torchs_and_goes_back():
    import torch

    x = torch.zeros(2, device="cuda")
    make(x, 1000, 1000, "float32")
    gc.collect()  # of the tests before
    before = torch.cuda.memory_allocated()
    made = make(x, 1000, 1000, "float32")
    assert torch.cuda.memory_allocated() - before == 4_000_256
    address = made.data_ptr()
    del made
    assert torch.cuda.memory_allocated() == before
    assert make(x, 1000, 1000, "float32").data_ptr() == address


def test_what_is_not_written_is_filled_where_torch_is_to_be_deterministic():
    import torch

    x = torch.zeros(2, device="cuda")
    make(x, 3, 5, "float32")
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.utils.deterministic.fill_uninitialized_memory
        assert make(x, 3, 5, "float32").isnan().all()
        assert (make(x, 3, 5, "int64") == torch.iinfo(torch.int64).max).all()
    finally:
        torch.use_deterministic_algorithms(False)


def test_memory_that_runs_out_is_torchs_own_error_with_the_line():
    import torch

    x = torch.zeros(2, device="cuda")
    make(x, 3, 5, "float32")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"gpu_allocations.py:\d+: (?s:.*)out of memory"):
            make(x, 1 << 20, 1 << 25, "float32")  # 128 TiB
    assert make(x, 3, 5, "float32").shape == (3, 5)


def test_scratch_memory_is_one_block_of_torchs():
    import torch

    source = 'extern "C" __global__ void k(char* a, char* b, char* c) { a[0] = b[0] = c[0] = 1; }'
    kernel = cl.load(cl.compile(source, arch="native"))["k"]

    @cl.function
    def f(x):
        a, b, c = (cl.empty(1 << 20, "uint8", like=x) for _ in range(3))
        kernel[1, 1](a, b, c)

    x = torch.zeros(2, device="cuda")
    f(x)
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    before, count = torch.cuda.memory_allocated(), _allocations()
    f(x)
    assert _allocations() - count == 1
    assert torch.cuda.max_memory_allocated() - before == 3 << 20
    assert torch.cuda.memory_allocated() == before


def _allocations() -> int:
    import torch

    return torch.cuda.memory_stats()["allocation.all.allocated"]
