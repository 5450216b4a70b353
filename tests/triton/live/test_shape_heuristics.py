"""Heuristics that read shapes and strides are looked up natively, and say what they would say."""

import random

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
)


# ---- what is launched


@pytest.fixture
def say():
    import heuristic_kernels

    return triton.jit(heuristic_kernels.say.fn)


@pytest.fixture
def compared(monkeypatch, on_emulator):
    """Compare, at every call in two, what is looked up with what is said."""
    monkeypatch.setenv("CULAUNCH_TRITON_CHECK", "1")


HEURISTICS = {
    "A": lambda args: args["x"].shape[0],
    "B": lambda args: args["x"].stride(0) if args["x"].dim() > 1 else -1,
    "C": lambda args: args["x"].numel() % args["n"],
    "D": lambda args: args["x"].is_contiguous(),
}


def expected(x, n):
    return [n, *(int(call({"x": x, "n": n})) for call in HEURISTICS.values())]


def tensors():
    x = torch.zeros(6, 8)
    yield from (x, x[:, 1:], x[1:], x.t(), x[::2], x.view(3, 16), x.view(-1), x.view(1, 6, 8))
    yield from (
        x[:1],
        x.t()[:, :1],
        x.expand(2, 6, 8),
        torch.zeros(2, 24)[:, ::3],
        x.new_empty(2, 0),
    )


def said(kernel, x, n):
    out = torch.zeros(5, dtype=torch.int32)
    kernel[(1,)](out, x, n, 0.5)
    return out.tolist()


def test_heuristics(compared, launched, say):
    kernel = launched(triton.heuristics(HEURISTICS)(say))
    choose = random.Random(0)
    cases = [(x, n) for x in tensors() for n in (3, 5)] * 3
    choose.shuffle(cases)
    for x, n in cases:
        assert said(kernel, x, n) == expected(x, n)


def test_they_are_on_the_quick_path(recorder, say):
    from culaunch.triton import native

    kernel = native(triton.heuristics(HEURISTICS)(say))
    out = torch.zeros(5, dtype=torch.int32)
    shapes = [torch.zeros(4, 4), torch.zeros(8, 4), torch.zeros(4, 8)[:, ::2]]
    for x in shapes * 2:
        kernel[(1,)](out, x, 3, 0.5)
    misses = kernel._misses
    for x in shapes * 5:
        kernel[(1,)](out, x, 3, 0.5)
    assert kernel._misses == misses


def test_a_tensor_that_changes_its_shape(compared, launched, say):
    kernel = launched(triton.heuristics(HEURISTICS)(say))
    x = torch.zeros(4, 4)
    for shape in ((4, 4), (2, 3), (4, 4), (7,), (2, 3)):
        x.resize_(shape)
        for _ in range(3):
            assert said(kernel, x, 5) == expected(x, 5)


def test_a_subclass_is_asked_every_time(on_emulator, launched, say):
    """It reports a shape of its own."""

    class Odd(torch.Tensor):
        rows = 9

        @property
        def shape(self):
            return (self.rows, 4)

    values = {**HEURISTICS, "A": lambda args: args["x"].shape[0]}
    kernel = launched(triton.heuristics(values)(say))
    x = torch.zeros(4, 4).as_subclass(Odd)
    assert said(kernel, x, 5)[1] == 9
    Odd.rows = 11
    assert said(kernel, x, 5)[1] == 11


def test_none_and_arrays_of_others(on_emulator, launched, say):
    import numpy as np

    import culaunch as cl

    values = {
        **HEURISTICS,
        "A": lambda args: 0 if args["x"] is None else args["x"].shape[0],
        "B": lambda args: 1,
        "C": lambda args: 2,
        "D": lambda args: 3,
    }
    kernel = launched(triton.heuristics(values)(say))
    others = [None, cl.to_device(np.zeros((7, 2), "f4")), torch.zeros(5, 2), torch.zeros(6)]
    for x, rows in [*zip(others, (0, 7, 5, 6), strict=True)] * 3:
        assert said(kernel, x, 5)[1] == rows


def test_more_dimensions_than_a_whole_shape_has(on_emulator, launched, say):
    values = {**HEURISTICS, "A": lambda args: len(args["x"].shape), "B": lambda args: 1}
    kernel = launched(triton.heuristics(values)(say))
    for rank in (9, 10, 8, 9):
        assert said(kernel, torch.zeros([1] * rank), 5)[1] == rank


def test_the_report_names_what_is_called(on_emulator, say):
    import culaunch.triton as ct

    values = {**HEURISTICS, "A": lambda args: args["x"].is_cuda}
    kernel = triton.heuristics(values)(say)
    with ct.install():
        ct.report(clear=True)
        assert said(kernel, torch.zeros(4, 4), 5)[1] == 0
        (found,) = ct.report().kernels
    assert found.native == 1
    assert any("the heuristic A is called: it reads .is_cuda" in one for one in found.notes)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.float32])
def test_in_the_body_of_a_function(on_emulator, say, dtype):
    import culaunch as cl
    from culaunch.triton import native

    kernel = native(triton.heuristics(HEURISTICS)(say))

    @cl.function
    def run(out, x, n: int):
        kernel[(1,)](out, x, n, 0.5)

    for x in (torch.zeros(4, 4), torch.zeros(6, 4), torch.zeros(4, 8)[:, ::2], torch.zeros(4, 4)):
        out = torch.zeros(5, dtype=dtype)
        run(out, x, 5)
        assert out.tolist() == expected(x, 5)
