"""Autograd notices that an operator wrote a tensor which it had kept."""

import pytest

import culaunch as cl

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.needs("torch")]


@pytest.fixture(params=["native", "without the symbol", "python"])
def way(request, monkeypatch):
    """How a counter is reached, and how torch's dispatcher comes to the function."""
    from culaunch._launch.torch import versions
    from culaunch._torch import dispatch

    if request.param == "python":
        monkeypatch.setattr(dispatch, "bind_operator", lambda *_: None)
    versions.open_counters()
    if request.param == "without the symbol":
        versions.find_counters(native=False)
    yield request.param
    versions.find_counters(native=True)


@pytest.fixture
def several(kernels):
    """A function that writes some of its arguments, in lists and by keywords, too."""

    @cl.function(mutates=["x", "ys", "z"])
    def several(x: cl.Array, ys: list[cl.Array], w: cl.Array, *, z: cl.Array | None = None):
        for y in ys:
            kernels["scale<float>"][1, 32](y, w, 2.0, w.size)
        kernels["scale<float>"][1, 32](x, w, 3.0, w.size)
        if z is not None:
            kernels["scale<float>"][1, 32](z, w, 4.0, w.size)

    return several


def calls_of(op):
    """Return the call past the dispatcher, and the one through it."""
    return op, op.overload


def test_what_was_kept_and_written_is_an_error(scale_in_place, name, way, torch):
    op = cl.frameworks.torch_op(name, scale_in_place)
    assert op.dispatch == ("python" if way == "python" else "native")
    for call in calls_of(op):
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        with torch.no_grad():
            call(y, 2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
        weight = torch.ones(3)
        y = x * weight
        call(weight, 2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_each_written_argument_is_counted_once(several, name, way, torch):
    op = cl.frameworks.torch_op(name, several)
    for call in calls_of(op):
        x, a, b, w, z = (torch.ones(3) for _ in range(5))
        view = x[:]  # of one counter with it
        call(x, [a, b], w)
        assert [one._version for one in (x, view, a, b, w, z)] == [1, 1, 1, 1, 0, 0]
        call(x, [a], w, z=z)
        assert [one._version for one in (x, view, a, b, w, z)] == [2, 2, 2, 1, 0, 1]
        assert torch.equal(x, 3 * w)
        assert torch.equal(z, 4 * w)


def test_what_is_only_read_is_not_counted(product, name, way, torch):
    op = cl.frameworks.torch_op(name, product)
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    for call in calls_of(op):
        call(y, y).sum().backward(retain_graph=True)
    assert y._version == 0


def test_inference_has_no_counters(scale_in_place, name, way, torch):
    op = cl.frameworks.torch_op(name, scale_in_place)
    for call in calls_of(op):
        outside = torch.ones(3)
        with torch.inference_mode():
            inside = torch.ones(3)
            call(inside, 2.0)
            call(outside, 2.0)
        call(inside, 2.0)
        assert torch.equal(inside, torch.full((3,), 4.0))
        assert torch.equal(outside, torch.full((3,), 2.0))
        assert outside._version == 1


@pytest.mark.slow
@pytest.mark.parametrize("is_registered", [True, False])
def test_a_compiled_region_counts(scale_in_place, name, torch, is_registered):
    op = cl.frameworks.torch_op(name, scale_in_place) if is_registered else scale_in_place

    @torch.compile(fullgraph=True, backend="aot_eager")
    def region(weight):
        op(weight, 2.0)

    x, weight = torch.ones(3, requires_grad=True), torch.ones(3)
    y = x * weight
    region(weight)
    assert torch.equal(weight, torch.full((3,), 2.0))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_batch_counts(scale_in_place, name, torch):
    op = cl.frameworks.torch_op(name, scale_in_place)
    x = torch.ones(2, 3)
    torch.vmap(lambda row: op(row, 2.0), out_dims=None)(x)
    assert torch.equal(x, torch.full((2, 3), 2.0))
    assert x._version > 0


def test_a_transformation_notices(scale_in_place, name, torch):
    op = cl.frameworks.torch_op(name, scale_in_place)

    def of_an_argument(x, weight):
        y = x * weight
        op(weight, 2.0)
        return y.sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.func.grad(of_an_argument)(torch.ones(3), torch.ones(3))


def test_opcheck_is_content(several, name, way, torch):
    op = cl.frameworks.torch_op(name, several)
    x, a, w, z = (torch.ones(3) for _ in range(4))
    torch.library.opcheck(op.overload, (x, [a], w), {"z": z})


def test_a_function_called_directly_is_not_counted(scale_in_place, torch):
    """As a kernel is not: who calls it says so."""
    x = torch.ones(3)
    scale_in_place(x, 2.0)
    assert x._version == 0
    torch.autograd.graph.increment_version(x)
    assert x._version == 1
