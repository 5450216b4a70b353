"""Calls: out=, overlap, several outputs, keywords, and what is wrong with a call."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew

add = ew.fuse(lambda x, y: x + y)


@ew.fuse
def scaled(x, factor=2.0, *, shift=0):
    """Scale and shift."""
    return x * factor + shift


def test_out_is_written_and_returned():
    x = np.arange(5, dtype=np.float32)
    out = np.zeros(5, np.float32)
    assert add(x, x, out=out) is out
    assert out.tolist() == [0, 2, 4, 6, 8]


def test_several_outputs():
    halves = ew.fuse(lambda x: (x // 2, x % 2, x))
    x = np.arange(7)
    quotient, rest, same = halves(x)
    assert (quotient.tolist(), rest.tolist()) == ((x // 2).tolist(), (x % 2).tolist())
    assert same is not x
    assert same.tolist() == x.tolist()
    outs = tuple(np.zeros(7, np.int64) for _ in range(3))
    assert halves(x, out=outs) is outs
    assert outs[0].tolist() == (x // 2).tolist()
    with pytest.raises(TypeError, match="out must be a tuple of 3 arrays"):
        halves(x, out=outs[:2])
    with pytest.raises(TypeError, match=r"out\[1\] must be int64, the type of the result"):
        halves(x, out=(outs[0], np.zeros(7), outs[2]))


def test_defaults_and_keywords():
    x = np.ones(3, np.float32)
    assert scaled(x).tolist() == [2, 2, 2]
    assert scaled(x, 3).tolist() == [3, 3, 3]
    assert scaled(x, shift=1, factor=5.0).tolist() == [6, 6, 6]
    assert scaled(x=x, shift=x).tolist() == [3, 3, 3]
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale and shift.")
    assert repr(scaled) == "<culaunch.elementwise function scaled(x, factor=2.0, *, shift=0)>"
    with pytest.raises(TypeError, match=r"scaled\(x, .*\): missing a required argument: 'x'"):
        scaled()
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'y'"):
        scaled(x, y=1)


def test_in_place():
    x = np.arange(10, dtype=np.float32)
    add(x, x, out=x)
    assert x.tolist() == [2 * i for i in range(10)]
    square = np.arange(64.0).reshape(8, 8)
    wanted = square.T + 1
    add(square.T, 1, out=square.T)
    np.testing.assert_array_equal(square.T, wanted)


def test_overlap_is_refused():
    x = np.arange(20, dtype=np.float32)
    for out, source in (
        (x[1:11], x[:10]),
        (x[:10][::-1], x[:10]),
        (x[:16].reshape(4, 4), x[:16].reshape(4, 4).T),
        (x[:10:2], x[:5]),
    ):
        before = x.copy()
        with pytest.raises(ValueError, match="out overlaps an argument"):
            add(source, 1, out=out)
        np.testing.assert_array_equal(x, before)
    with pytest.raises(ValueError, match="has elements that share memory"):
        add(1, np.ones((3, 4)), out=np.lib.stride_tricks.as_strided(np.zeros(4), (3, 4), (0, 8)))
    with pytest.raises(ValueError, match=r"out\[0\] overlaps another out"):
        ew.fuse(lambda x: (x, x))(np.ones(3), out=(x.view(np.float64)[:3],) * 2)


@pytest.mark.slow
def test_disjoint_parts_of_one_array_do_not_overlap():
    x = np.arange(24, dtype=np.float32)
    add(x[::2], 0, out=x[1::2])
    assert x[1::2].tolist() == list(range(0, 24, 2))
    square = np.arange(36, dtype=np.float32).reshape(6, 6)
    add(square[:, :3], 0, out=square[:, 3:])
    assert square[:, 3:].tolist() == square[:, :3].tolist()
    parts = np.arange(10) + 1j
    add(parts.real, 0, out=parts.imag)
    assert parts.imag.tolist() == parts.real.tolist()


def test_a_kernel_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path))
    first = ew.fuse(lambda x, y: ew.sqrt(x * x + y * y) + 7.25)

    @ew.fuse
    def second(left, right):
        unused = left / right  # noqa: F841
        squares = left * left, right * right
        return ew.sqrt(squares[0] + squares[1]) + 7.25

    x = np.ones(5, np.float32)
    first(x, x)
    assert cl.cache.Cache().info().entries == 1
    second(x, x)
    first(x + 1, x)
    assert cl.cache.Cache().info().entries == 1
    assert first.source(x, x) == second.source(x, x)


def test_source_and_lower():
    x = np.ones(5, np.float32)
    lowered = scaled.lower(x)
    assert lowered.name == "multiply_add_float32_contiguous_x4"
    assert lowered.name in lowered.source
    assert lowered.source == scaled.source(x)
    assert lowered.image.format == "ptx"
    out = np.zeros(5, np.float32)
    kernel = cl.load(lowered.image)[lowered.name]
    assert [p.type for p in kernel.signature.parameters] == ["float*", "const float*", "float",
                                                             "float", "unsigned int"]  # fmt: skip
    kernel[1, 256](out, x, 2.0, 1.0, 5)
    assert out.tolist() == [3] * 5
    with pytest.raises(ValueError, match="the arrays are empty"):
        scaled.source(x[:0])
    with pytest.raises(TypeError, match="every argument must be an array or a number"):
        scaled.source("x")


def test_a_fused_function_in_another():
    outer = ew.fuse(lambda x: scaled(x, shift=x) * 2)
    assert outer(np.ones(3)).tolist() == [6, 6, 6]
    with pytest.raises(TypeError, match="out cannot be passed inside a fused function"):
        ew.fuse(lambda x: scaled(x, out=x))(np.ones(3))


def test_shapes_that_do_not_broadcast():
    with pytest.raises(
        ValueError, match=r"argument y of shape \(4,\) does not broadcast with shape \(2, 3\)"
    ):
        add(np.ones((2, 3)), np.ones(4))
    with pytest.raises(ValueError, match=r"out must have shape \(2, 3\) \(got \(3,\)\)"):
        add(np.ones((2, 3)), np.ones(3), out=np.ones(3))


def test_arrays_that_are_not_read_are_broadcast():
    first = ew.fuse(lambda x, y: x)
    assert first(np.ones(3), np.ones((2, 1))).shape == (2, 3)


def test_what_out_may_be():
    x = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="out must be float32, the type of the result"):
        add(x, x, out=np.ones(3))
    with pytest.raises(TypeError, match=r"out must be an array \(got 'out'\)"):
        add(x, x, out="out")
    frozen = np.ones(3, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        add(x, x, out=frozen)


def test_arguments_of_other_kinds():
    with pytest.raises(TypeError, match=r"argument y must be an array.*\(got str\)"):
        add(np.ones(3), "3")
    with pytest.raises(TypeError, match=r"argument x must be an array.*\(got list\)"):
        add([1, 2], np.ones(3))
    with pytest.raises(TypeError, match="needs at least one array"):
        add(1, 2.0)
    with pytest.raises(TypeError, match=r"argument y has elements of a type that is not supported"):
        add(np.ones(3), np.array(["a", "b", "c"]))
    with pytest.raises((TypeError, ValueError), match=r"native byte order|not supported"):
        add(np.ones(3), np.ones(3, ">f8"))


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_arrays_of_two_frameworks():
    import torch

    with pytest.raises(TypeError, match=r"argument y is a <class 'torch\.Tensor'>, but the arrays"):
        add(np.ones(3), torch.ones(3))
    with pytest.raises(TypeError, match="all arrays of a call must be of one framework"):
        add(cl.to_device(np.ones(3)), np.ones(3))
    with pytest.raises(TypeError, match="argument x has elements of a type that is not supported"):
        add(torch.ones(3).to(torch.float8_e4m3fn), 1)


def test_too_many_arguments():
    names = [f"a{i}" for i in range(50)]
    many = ew.fuse(eval(f"lambda {', '.join(names)}: {' + '.join(names)}"))
    with pytest.raises(TypeError, match="has 50 parameters, but at most 47 are supported"):
        many(*[np.ones(3)] * 50)
    forty = ew.fuse(eval(f"lambda {', '.join(names[:40])}: {' + '.join(names[:40])}"))
    assert forty(*[np.ones(3)] * 40).tolist() == [40.0] * 3
    with pytest.raises(ValueError, match="inputs and outputs together"):
        ew.fuse(lambda x: tuple(x + i for i in range(60)))(np.ones(3))


def test_functions_that_cannot_be_fused():
    with pytest.raises(TypeError, match="a fused function cannot take"):
        ew.fuse(lambda *x: x)
    with pytest.raises(TypeError, match="out is the output's name"):
        ew.fuse(lambda x, out: x)
    with pytest.raises(TypeError, match="returns the constant 1"):
        ew.fuse(lambda x: 1)(np.ones(3))
    with pytest.raises(TypeError, match="must return a value or a tuple of values"):
        ew.fuse(lambda x: None)(np.ones(3))
    with pytest.raises(TypeError, match="must return at least one value"):
        ew.fuse(lambda x: ())(np.ones(3))


def test_from_many_threads():
    new = ew.fuse(lambda x, y: x * 3 - y)
    x = np.arange(1000, dtype=np.float32)
    wrong = []

    def work(seed):
        for size in range(seed, 1000, 97):
            if not np.array_equal(new(x[:size], x[:size]), x[:size] * 2):
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
