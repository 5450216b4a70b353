"""Triton kernels in a body: the variants that calls select, against the body as plain Python."""

import contextlib
import gc
import importlib

import numpy as np
import pytest
from bodies import both

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("triton")]


@pytest.fixture(scope="module")
def triton_kernels():
    import kernels_in_bodies

    return kernels_in_bodies


@pytest.fixture(scope="module")
def add(triton_kernels):
    from culaunch.triton import native

    return native(triton_kernels.add)


def numbers(n, offset=0):
    whole = np.arange(n + 16, dtype=np.float32) + 1
    aligned = -whole.ctypes.data // 4 % 4
    return whole[aligned + offset : aligned + offset + n]


@pytest.mark.slow
def test_divisibility_ones_and_alignment_are_guards(add):
    @cl.function
    def scaled(x, y, factor: float):
        out = cl.empty_like(x)
        n = x.size
        add[lambda meta: (cl.ceildiv(n, meta["BLOCK"]),)](x, y, out, n, factor, BLOCK=64)
        return out

    for n in (16, 17, 1, 0, 64, 100, 1):
        for offset in (0, 1):
            x, y = numbers(n, offset), numbers(n)
            assert both(scaled, x, y, 0.5).tolist() == (x * np.float32(0.5) + y).tolist()
    text = scaled.explain(numbers(16), numbers(16), 0.5)
    assert "(x.shape[0] % 16) == 0" in text
    assert "x.shape[0] == 1" in text
    assert "(address(x) % 16) == 0" in text
    assert "device.compute_capability_major ==" in text


def test_views_of_a_body_are_aligned_or_not(add):
    @cl.function
    def shifted(x, begin: int):
        out = cl.empty(x.shape[0] - begin, x.dtype)
        add[1,](x[begin:], x[begin:], out, out.size, 1.0, BLOCK=64)
        return out

    for begin in (0, 1, 4, 5):
        assert both(shifted, numbers(32), begin).tolist() == (2 * numbers(32)[begin:]).tolist()


def test_grids_are_numbers_tuples_and_functions(add):
    @cl.function
    def grids(x, which: str):
        out = cl.zeros_like(x)
        n = x.size
        grid = {
            "tuple": (cl.ceildiv(n, 64),),
            "list": [cl.ceildiv(n, 64), 1],
            "three": (cl.ceildiv(n, 64), 1, 1),
            "function": lambda meta: (cl.ceildiv(meta["n"], meta["BLOCK"]), 1),
            "empty": (0 * n, 5),
        }[which]
        add[grid](x, x, out, factor=1.0, n=n, BLOCK=64)
        return out

    for which in ("tuple", "list", "three", "function"):
        assert both(grids, numbers(100), which).tolist() == (2 * numbers(100)).tolist()
    assert both(grids, numbers(100), "empty").tolist() == [0] * 100


def test_a_grid_of_another_package_answers_is(add, tmp_path, monkeypatch):
    (tmp_path / "culaunch_grids.py").write_text(
        "class Grid:\n"
        "    def __init__(self, is_small):\n"
        "        self.is_small = is_small\n"
        "    def of(self, meta):\n"
        "        return (1 if self.is_small is True else 4,)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    grids = importlib.import_module("culaunch_grids")

    @cl.function
    def sized(x):
        out = cl.zeros_like(x)
        add[grids.Grid(x.size < 65).of](x, x, out, x.size, 1.0, BLOCK=64)
        return out

    for n in (64, 200, 50):
        assert both(sized, numbers(n)).tolist() == (2 * numbers(n)).tolist()


def test_wrong_grids_are_refused(add):
    @cl.function
    def wrong(x, grid):
        add[{"text": "x", "four": (1, 1, 1, 1), "float": (1.5,), "negative": (-x.size,)}[grid]](
            x, x, x, x.size, 1.0, BLOCK=64
        )

    for grid in ("text", "four", "float"):
        with pytest.raises(TypeError, match="a grid must be a tuple of 1 to 3 ints"):
            wrong(numbers(4), grid)
    with pytest.raises(ValueError, match="a grid of add must not be negative"):
        wrong(numbers(4), "negative")


def test_what_does_not_bind_is_refused(add):
    @cl.function
    def wrong(x, how: str):
        launch = add[1,]
        if how == "too many":
            launch(x, x, x, 1, 1.0, 64, 3, 4)
        if how == "twice":
            launch(x, x, x, 1, 1.0, 64, n=3)
        if how == "missing":
            launch(x, x, x, 1, BLOCK=64)
        if how == "kind":
            launch(x, x, x, {}, 1.0, BLOCK=64)

    for how, match in (
        ("too many", "takes 6 arguments"), ("twice", "two values for argument 'n'"),
        ("missing", "is missing argument 'factor'"),
        ("kind", "argument 'n' of add.. must be an array"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=match):
            wrong(numbers(4), how)


def test_an_autotuner_and_heuristics_choose_by_their_key(triton_kernels):
    from culaunch.triton import native

    tuned = native(triton_kernels.tuned)

    @cl.function
    def doubled(x):
        out = cl.zeros_like(x)
        n = x.size
        tuned[lambda meta: (cl.ceildiv(n, meta["BLOCK"]),)](x, out, n)
        return out

    for n in (16, 17, 16, 200):
        x = numbers(n)
        kept = x.copy()
        assert doubled(x).tolist() == (x * (2 if n % 2 == 0 else 1)).tolist()
        assert x.tolist() == kept.tolist(), "nothing of the call is touched while it is measured"
    x = numbers(200)
    assert both(doubled, x).tolist() == (2 * x).tolist()
    assert "x.shape[0] == 200" in doubled.explain(x)


def test_python_that_runs_at_each_launch_is_refused(triton_kernels):
    from culaunch.triton import native

    hooked = native(triton_kernels.hooked)

    @cl.function
    def with_hook(x):
        hooked[1,](x, x.size)

    with pytest.raises(TypeError, match="has a pre_hook, which runs Python"):
        with_hook(numbers(256))


def test_a_plain_kernel_says_to_wrap_it(triton_kernels):
    from culaunch.triton import native

    plain = triton_kernels.add
    native(plain)  # which lets Triton work without a GPU

    @cl.function
    def unwrapped(x):
        plain[1,](x, x, x, 4, 1.0, BLOCK=64)

    with pytest.raises(TypeError, match=r"add is a plain Triton kernel.*triton\.native\(add\)$"):
        unwrapped(numbers(4))


def test_every_kind_of_argument(triton_kernels):
    from culaunch.triton import native

    every_kind = native(triton_kernels.every_kind)
    held = np.full(4, 7.5, dtype=np.float32)

    @cl.function
    def kinds(out, x, n: int, f: float, flag: bool, maybe=None):
        every_kind[1,](out, (n, x), maybe, n * 2**20, n, f, -f, flag, n % 100, BLOCK=32)
        every_kind[(1,)](out[9:], (3, held), held, 1, 2, n, n * 0.5, n > 2, 5, BLOCK=16)

    for n, flag, with_array in ((1, True, False), (16, False, True), (40000, True, True)):
        x = numbers(4)
        seen = []
        for mode in (contextlib.nullcontext, contextlib.nullcontext, cl.function_debugging):
            out = np.zeros(18)
            with mode():
                kinds(out, x, n, 0.25, flag, x if with_array else None)
            seen.append(out.tolist())
        expected = [
            n, 1, 1 if with_array else 0, n * 2**20, n, 0.25, -0.25, 32 if flag else 0, n % 100,
            3, 7.5, 7.5, 1, 2, n, n * 0.5, 16 if n > 2 else 0, 5,
        ]  # fmt: skip
        assert seen == [expected] * 3
    with pytest.raises(OverflowError, match="cannot hold a number this large"):
        kinds(out, x, 2**30, 0.25, True)


def test_a_global_that_changes_is_refused_as_in_a_call(triton_kernels, monkeypatch):
    import triton.language as tl

    from culaunch.triton import native

    with_global = native(triton_kernels.with_global)

    @cl.function
    def tripled(x):
        with_global[1,](x, BLOCK=4)

    x = np.ones(4, np.float32)
    tripled(x)
    assert x.tolist() == [3] * 4
    monkeypatch.setattr(triton_kernels, "FACTOR", tl.constexpr(5))
    with pytest.raises(RuntimeError, match="Global variable FACTOR has changed"):
        tripled(x)
    assert x.tolist() == [3] * 4


def test_a_saved_set_selects_its_variant(triton_kernels):
    from culaunch.triton import compile as compile_triton

    text = "*fp32:16, *fp32:16, *fp32:16, {}, fp32"
    kernels = compile_triton(
        triton_kernels.add,
        [text.format(n) for n in ("i32", "i32:16")],
        arch="compute_80",
        constants={"BLOCK": 64},
    )

    @cl.function
    def scaled(x, y, factor: float):
        out = cl.empty_like(x)
        kernels[cl.ceildiv(x.size, 64),](x, y, out, x.size, factor)
        return out

    for n in (16, 17, 0, 96):
        x = numbers(n)
        assert both(scaled, x, x, 2.0).tolist() == (x * 3).tolist()
    with pytest.raises(cl.KernelNotFoundError, match="no variant of add fits"):
        scaled(numbers(4, 1), numbers(4), 2.0)


def test_a_function_keeps_what_it_launches(triton_kernels):
    from culaunch.triton import native

    def made():
        kernel = native(triton_kernels.with_global)

        @cl.function
        def tripled(x):
            kernel[1,](x, BLOCK=4)

        return tripled

    tripled = made()
    x = np.ones(4, np.float32)
    tripled(x)
    gc.collect()
    tripled(x)
    assert x.tolist() == [9] * 4


def moving(triton_kernels):
    from triton.tools.tensor_descriptor import TensorDescriptor

    from culaunch.triton import native

    move = native(triton_kernels.move)

    @cl.function
    def moved(x, factor: float):
        m, n = x.shape
        y = cl.empty((m, n), x.dtype)
        to = TensorDescriptor(y, [m, n], y.strides, [16, 16])
        of = TensorDescriptor(x, [m, n], x.strides, [16, 16])
        move[cl.ceildiv(m, 16), cl.ceildiv(n, 16)](of, to, factor)
        return y

    return moved


@pytest.mark.needs("torch")
def test_tensor_descriptors_of_arrays_of_the_body(triton_kernels):
    import torch

    moved = moving(triton_kernels)
    for shape in ((32, 16), (20, 40), (16, 16)):
        x = torch.arange(shape[0] * shape[1], dtype=torch.float32).reshape(shape)
        assert torch.equal(torch.as_tensor(both(moved, x, 2.0)), 2 * x)
    wide = torch.zeros(4, 64, dtype=torch.float32)[:, :20]
    assert torch.equal(moved(wide + 1, 0.5), torch.full((4, 20), 0.5))
    with pytest.raises(AssertionError, match="16-byte aligned"):
        moved(torch.zeros(4, 64)[:, 1:17], 1.0)


def test_a_function_says_what_its_triton_kernels_write(add):
    @cl.function
    def into(x, out):
        add[1,](x, x, out, x.size, 1.0, BLOCK=64)

    both(into, numbers(4), numbers(4))
    assert "writes out" in str(into)
    assert "x" not in str(into).partition("writes")[2]
    read_only = numbers(4)
    read_only.flags.writeable = False
    into(read_only, numbers(4))
    with pytest.raises((TypeError, ValueError), match="read-only"):
        into(numbers(4), read_only)
