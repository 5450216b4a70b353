"""The host side of a function that reduces: kinds without a call, files, exports, frameworks."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
from culaunch import elementwise as ew
from culaunch._function.calling.specialize import explore, kinds_of
from culaunch._function.programs.record import Notes

ROWS = cl.Array("float32", "b n")


@ew.fuse
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)


def values(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def softmax_in_numpy(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def paths(function, count, **kinds):
    """Follow the first paths of a kind to both sides of each guard."""
    declaration = function.declaration
    (kind,) = kinds_of(declaration, kinds)
    every = explore(declaration, kind, Notes(), both_sides=True)
    return [run for run, _ in zip(every, range(count), strict=False)]


NO_IDENTITY = {
    "max": lambda x: ew.max(x, axis=-1),
    "min": lambda x: ew.min(x, axis=-1),
    "argmax": lambda x: ew.argmax(x, axis=-1),
    "argmin": lambda x: ew.argmin(x, axis=-1),
    "norm": lambda x: ew.norm(x, axis=-1, ord=float("inf")),
    "logsumexp": lambda x: ew.logsumexp(x, axis=-1),
    "softmax": softmax._function,
}


@pytest.mark.parametrize("name", NO_IDENTITY)
def test_no_elements_are_an_error_of_the_program(name):
    host = ew.fuse(NO_IDENTITY[name]).as_function()
    # A check, not a guard: it has no path of its own.
    assert not any(run.is_error for run in paths(host, 20, x=ROWS))
    host.specialize(x=ROWS, both_sides=False)
    assert len(host(values(4, 256))) == 4
    with pytest.raises(ValueError, match="cannot reduce zero elements"):
        host(np.zeros((4, 0), np.float32))
    assert len(host(values(4, 256))) == 4


def test_a_reduction_kernel_without_an_identity():
    times = ew.ReductionKernel("T x", "T y", "x", "a * b", "y = a", None, "times")

    @cl.function
    def host(x):
        return times(x)

    host.specialize(x=ROWS, both_sides=False)
    for _ in range(2):
        assert host(np.full((2, 3), 2, np.float32)) == 64
        with pytest.raises(ValueError, match="it has no identity"):
            host(np.zeros((2, 0), np.float32))


SHAPES = {
    "do not broadcast": lambda x, y: ew.sum(x * y, axis=-1),
    "does not broadcast": lambda x, y: x * y,
}


@pytest.mark.parametrize("error", SHAPES)
def test_shapes_that_do_not_broadcast_are_an_error_of_the_program(error):
    host = ew.fuse(SHAPES[error]).as_function()
    paths(host, 40, x=ROWS, y=ROWS)
    x, y = values(4, 5), values(4, 5)
    wanted = (x * y).sum(-1) if "do not" in error else x * y
    for _ in range(2):
        np.testing.assert_allclose(host(x, y), wanted, rtol=1e-5)
        for wrong in (values(3, 5), values(4, 4)):
            with pytest.raises(ValueError, match=error):
                host(x, wrong)


def test_a_path_on_which_a_value_meets_itself_is_an_error_of_the_program():
    host = ew.fuse(lambda x, y: x * y + ew.sum(x, axis=1)).as_function()
    runs = paths(host, 60, x=ROWS, y=ROWS)
    assert 0 < sum(run.is_error for run in runs) < 60
    for _ in range(2):
        with pytest.raises(ValueError, match="is combined with itself along a different dimension"):
            host(values(4, 4), values(4, 4))
        row = values(1, 5)
        np.testing.assert_allclose(host(row, row), row * row + row.sum(1), rtol=1e-5)


def test_a_body_catches_what_the_shapes_give():
    greatest = ew.fuse(lambda x: ew.max(x, axis=-1))

    @cl.function
    def body(x):
        try:
            return greatest(x)
        except ValueError:
            return cl.zeros((1,), "float32")

    for _ in range(2):
        np.testing.assert_array_equal(body(values(3, 40)), values(3, 40).max(-1))
        np.testing.assert_array_equal(body(values(3, 0)), [0])


def test_every_path_is_more_than_a_program_has():
    with pytest.raises(ValueError, match=r"more than 64 paths .* both_sides=False"):
        softmax.as_function().specialize(x=ROWS)


def test_a_library_has_the_kinds_that_were_specialized(tmp_path):
    host = softmax.as_function()
    host.specialize(x=ROWS, both_sides=False)
    x = values(6, 40)
    wanted = host(x)  # a path that the likely sizes do not take
    cl.ship.save([host], tmp_path / "softmax.culib")
    library = cl.ship.load_library(tmp_path / "softmax.culib")
    np.testing.assert_array_equal(library.softmax(x), wanted)
    with pytest.raises(ValueError, match="max cannot reduce zero elements"):
        library.softmax(np.zeros((6, 0), np.float32))


@pytest.mark.slow
@pytest.mark.needs("tvm_ffi", "g++", "nvrtc")
def test_an_export(tmp_path):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    host = softmax.as_function()
    x = values(6, 40)
    wanted = host(x)
    cl.ship.export(host, tmp_path / "libsoftmax.so", flags=["-O0"])
    module = tvm_ffi.load_module(str(tmp_path / "libsoftmax.so"))
    found = np.zeros_like(x)
    module.softmax_into(found, x)
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(ValueError, match="max cannot reduce zero elements"):
        module.softmax_into(np.zeros((6, 0), np.float32), np.zeros((6, 0), np.float32))


@pytest.mark.needs("jax")
def test_an_operator_of_jax_and_its_gradient():
    jax = pytest.importorskip("jax")
    operator = cl.frameworks.jax_op(softmax.as_function(backward="auto"))
    x = jax.numpy.asarray(values(6, 40))
    weight = jax.numpy.asarray(values(40))
    np.testing.assert_allclose(jax.jit(operator)(x), softmax_in_numpy(np.asarray(x)), rtol=1e-5)
    ours = jax.grad(lambda x: (operator(x) * weight).sum())(x)
    theirs = jax.grad(lambda x: (jax.nn.softmax(x) * weight).sum())(x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.needs("torch")
def test_an_operator_of_torch_of_functions_without_an_identity():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(values(6, 40))
    for name, body in NO_IDENTITY.items():
        fused = ew.fuse(body)
        operator = cl.frameworks.torch_op(f"tests_reductions::{name}_of_rows", fused)
        assert torch.equal(operator(x), torch.as_tensor(np.asarray(fused(x.numpy()))))
        with pytest.raises(ValueError, match="cannot reduce zero elements"):
            operator(x[:, :0])


@pytest.mark.needs("torch")
def test_a_registration_compiles_the_kernels_of_one_path(tmp_path, monkeypatch):
    """All paths return the same types, and there may be more of them than a program has."""
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path))
    fused = ew.fuse(lambda x: softmax(x) * 0.7251)  # whose kernels nothing else has compiled
    cl.frameworks.torch_op("tests_reductions::one_path", fused)
    assert 0 < cl.cache.Cache().info().entries <= 2


@pytest.mark.parametrize(
    "body",
    [lambda x: ew.sum(CLOSED), lambda x: x - ew.max(CLOSED), lambda x: ew.sum(x * CLOSED)],
)
def test_an_array_that_is_closed_over_is_refused(body):
    with pytest.raises(TypeError, match="pass every array as an argument"):
        ew.fuse(body)(values(2, 3))


CLOSED = values(2, 3)
