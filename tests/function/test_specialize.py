"""Kinds that are traced without a call, only shapes, and gradients, as frameworks need them."""

import numpy as np
import pytest
from bodies import shape_only

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

x4 = np.arange(4, dtype=np.float32)


@pytest.fixture
def scale(kernels):
    @cl.function
    def scale(x: cl.Array("float32 | float64", "n"), factor: float, twice: bool = False):
        cl.check(x.is_contiguous(), "x must be contiguous")
        y = cl.empty_like(x)
        n = x.shape[0]
        if n == 0:
            return y
        block = 128 if x.is_aligned(16) else 64
        if n > 1000:
            raise OverflowError(f"n is too large: {n}")
        kernels[f"scale<{x.dtype}>"][cl.ceildiv(n, block), block](y, x, factor, n)
        return y

    return scale


def traces_of(function, monkeypatch):
    traced = []
    learn = type(function)._learn

    def noted(self, *args):
        traced.append(args)
        return learn(self, *args)

    monkeypatch.setattr(type(function), "_learn", noted)
    return traced


def test_both_sides_of_every_guard_are_there(scale, monkeypatch):
    kinds = scale.specialize()
    assert [kind[0][1] for kind in kinds] == [11, 12]
    assert {kind[1:] for kind in kinds} == {(float, False)}
    traced = traces_of(scale, monkeypatch)
    base = np.arange(64, dtype=np.float32)
    for x in (base[:0], base, base[1:5], np.arange(3.0)):
        assert scale(x, 2.0).tolist() == (x * 2).tolist()
    with pytest.raises(OverflowError, match="n is too large: 2000"):
        scale(np.zeros(2000, np.float32), 2.0)
    with pytest.raises(ValueError, match="x must be contiguous"):
        scale(base[::2], 2.0)
    assert traced == []
    assert scale.explain().count("5 paths") == 2


def test_one_side_is_the_likely_one(scale, monkeypatch):
    scale.specialize(x=cl.Array("float32", "n"), factor=float, both_sides=False)
    assert "2 paths" in scale.explain()  # the likely one, and the refusal that it begins with
    traced = traces_of(scale, monkeypatch)
    assert scale(np.zeros(64, np.float32), 1.0).shape == (64,)
    assert scale(x4[:0], 1.0).shape == (0,)
    assert len(traced) <= 2


def test_what_specialize_needs_is_named(scale):
    @cl.function
    def untold(x, n, mode="a"):
        return [0] * n if mode == "b" else n

    with pytest.raises(TypeError, match="is missing x: give x"):
        untold.specialize(n=int)
    with pytest.raises(TypeError, match="has no parameter 'm': its parameters are x, n, mode"):
        untold.specialize(m=int)
    with pytest.raises(TypeError, match=r"needs the element type and the dimensions of x"):
        untold.specialize(x=cl.Array("float32"), n=int)
    with pytest.raises(TypeError, match=r"the body needs the value of n itself"):
        untold.specialize(x=None, n=int, mode="b")
    assert untold.specialize(x=None, n=3) == ((None, int, ("value", "a")),)
    lists = untold.specialize(x=[cl.Array("int8", "a b"), cl.Array("int8", "c")], n=float)
    assert lists == (
        ((("list", (("array", 1, 2, False), ("array", 1, 1, False)))), float, ("value", "a")),
    )
    with pytest.raises(TypeError, match="both_sides must be True or False"):
        scale.specialize(both_sides=1)


def test_a_loop_whose_end_depends_on_a_size():
    @cl.function
    def halvings(n: int):
        count = 0
        while n > 1:
            n //= 2
            count += 1
        return count

    with pytest.raises(ValueError, match=r"has more than 64 paths|makes more than"):
        halvings.specialize()
    assert [halvings(n) for n in (1, 2, 5, 1024)] == [0, 1, 2, 10]


def test_shapes_alone(scale):
    y = scale.abstract(shape_only((7,), "float64"), 2.0)
    assert (y.shape, repr(y.dtype), y.argument, y.strides) == ((7,), "float64", None, (1,))

    @cl.function
    def views(x, xs):
        return x, xs[1], x[1:], {"n": x.shape[0] * 2}

    pair = [shape_only((1,), "int8"), shape_only((2,), "int8")]
    whole, element, view, numbers = views.abstract(shape_only((3, 2), "float16"), pair)
    assert whole.argument == (0,)
    assert element.argument == (1, 1)
    assert (view.argument, view.base, view.shape) == (None, (0,), (2, 2))
    assert numbers == {"n": 6}
    with pytest.raises(TypeError, match="x must be an array of float32 or float64"):
        scale.abstract(shape_only((7,), "int8"), 2.0)


@pytest.mark.slow
def test_shapes_of_a_framework(scale):
    torch = pytest.importorskip("torch", reason="needs torch")
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv()
    from torch._dynamo.source import ConstantSource

    size = env.create_symintnode(
        env.create_symbol(40, source=ConstantSource("n")), hint=40, source=ConstantSource("n")
    )
    y = scale.abstract(shape_only((size,), torch.float32), 2.0)
    assert y.shape[0] is size
    assert isinstance(size, torch.SymInt)

    @cl.function
    def blocks(x):
        return cl.empty((cl.ceildiv(x.shape[0], 16), max(x.shape[0], 3)), x.dtype)

    found = blocks.abstract(shape_only((size,), torch.bfloat16))
    assert [int(one) for one in found.shape] == [3, 40]


def test_gradients_are_declared(scale):
    @scale.backward
    def scale_backward(grad, factor, out_0):
        return scale(grad, factor), out_0

    gradient = scale._gradient
    assert gradient.needs == (("grad", 0), ("argument", "factor"), ("out", 0))
    given = gradient.inputs((x4,), (5,), (), {"x": x4, "factor": 2.0, "twice": False})
    assert given == [x4, 2.0, 5]
    with pytest.raises(ValueError, match=r"must be grad, .*x, factor.* .got 'gradient'"):
        scale.backward(lambda gradient: None)
    with pytest.raises(TypeError, match="function must be callable"):
        scale.backward(3)
    with pytest.raises(ValueError, match=r"forward must be given, because .* takes saved values"):
        scale.backward(lambda saved_0: None)
    with pytest.raises(TypeError, match=r"forward must be a Function .got 3"):
        scale.backward(lambda saved_0: None, forward=3)
    with pytest.raises(ValueError, match=r"parameters of scale: x, factor.* .got grad, factor"):
        scale.backward(lambda saved_0: None, forward=cl.function(lambda grad, factor: grad))


def test_what_may_be_written_where_no_signature_tells(kernels):
    bare = kernels.kernel("copy", signature="float*, void*, long long, long long, int")

    @cl.function
    def copied(y, x):
        bare[1, 64](y, x, 1, 1, x.size)

    assert copied.mutates == ()
    copied.specialize(y=cl.Array("float32", "n"), x=cl.Array("float32", "n"))
    assert copied.mutates == ("y", "x")


def test_allocations_outside_of_a_body():
    assert isinstance(cl.empty((2, 3), "float32"), cl.DeviceArray)
    assert cl.zeros(3, cl.empty_like(x4).dtype).numpy().tolist() == [0, 0, 0]
    y = cl.zeros_like(x4, shape=(2, 2), dtype="int32")
    assert type(y) is np.ndarray
    assert (y.dtype, y.shape, y.any()) == (np.int32, (2, 2), False)
    torch = pytest.importorskip("torch", reason="needs torch")
    z = cl.zeros_like(torch.ones(3, dtype=torch.bfloat16))
    assert (z.dtype, z.shape, z.sum().item()) == (torch.bfloat16, (3,), 0)
    assert cl.ceildiv(7, 2) == 4
    assert cl.next_power_of_2(5) == 8
    with pytest.raises(TypeError, match="ceildiv takes only ints"):
        cl.ceildiv(7.0, 2)


def test_a_text_of_a_number_that_has_no_value(kernels):
    @cl.function
    def named(n: int):
        kernels[f"scale{n}"][1, 1]()

    with pytest.raises(TypeError, match="the body needs the value of n itself"):
        named.specialize()
