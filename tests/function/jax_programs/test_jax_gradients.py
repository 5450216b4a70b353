"""Gradients of functions in programs of JAX."""

from __future__ import annotations

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.mark.parametrize(
    "way", [pytest.param("itself", marks=pytest.mark.slow), "itself by name", "jax"]
)
def test_gradients(scale, x, way):
    """One declaration serves every framework: in it the function is called as it is."""

    @scale.backward
    def gradient(grad, x, factor):
        if way == "jax":
            return scale.jax(grad, factor)
        return scale(grad, factor) if way == "itself" else scale(factor=factor, x=grad)

    gradient_of = jax.grad(lambda x: (scale.jax(x, 3.0) * x).sum())
    assert gradient_of(x).tolist() == (6 * x).tolist()
    assert jax.jit(gradient_of)(x).tolist() == (6 * x).tolist()
    assert jax.jit(jax.vmap(gradient_of))(jnp.ones((2, 3))).tolist() == [[6] * 3] * 2
    # And the gradient of a gradient.
    second = jax.grad(lambda x: (gradient_of(x) * x).sum())
    assert jax.jit(second)(x).tolist() == (12 * x).tolist()


def test_the_gradient_is_a_function(kernels, scale, x):
    @cl.function
    def gradient(grad, factor: float):
        y = cl.empty_like(grad)
        kernels["scale<float>"][1, 64](y, grad, factor, grad.size)
        return y

    scale.backward(gradient)
    assert jax.grad(lambda x: scale.jax(x, 3.0).sum())(x).tolist() == [3] * 5


def test_saved_values_of_another_forward_function(kernels, scale, x):
    @cl.function
    def forward(x: cl.Array("float32", "n"), factor: float):
        y, saved = cl.empty_like(x), cl.empty_like(x)
        kernels["scale<float>"][1, 64](y, x, factor, x.size)
        kernels["scale<float>"][1, 64](saved, x, 10.0, x.size)
        return y, saved

    scale.backward(lambda grad, saved: grad * saved, forward=forward)
    gradient_of = jax.grad(lambda x: scale.jax(x, 3.0).sum())
    assert gradient_of(x).tolist() == (10 * x).tolist()
    assert jax.jit(gradient_of)(x).tolist() == (10 * x).tolist()
    assert scale.jax(x, 3.0).tolist() == (3 * x).tolist()


def test_gradients_that_there_are_not(kernels, scale, x):
    @cl.function
    def bump(cache):
        kernels["add"][1, 64](cache, 1.0, cache.size)

    with pytest.raises(TypeError, match=r"scale has no gradient: .* with scale.backward"):
        jax.grad(lambda x: scale.jax(x, 3.0).sum())(x)
    bump.backward(lambda grad: grad)
    with pytest.raises(TypeError, match="bump has no gradient, because it writes or returns"):
        jax.grad(lambda x: bump.jax(x).sum())(x)
    scale.backward(lambda grad: (grad, grad))
    with pytest.raises(TypeError, match=r"must return 1 gradients, .* \(got 2\)"):
        jax.grad(lambda x: scale.jax(x, 3.0).sum())(x)


@pytest.mark.slow
def test_gradients_of_every_reverse_kind(scale, x):
    scale.backward(lambda grad, factor: scale(grad, factor))

    def total(x):
        return scale.jax(x, 2.0).sum()

    value, found = jax.value_and_grad(total)(x)
    assert (float(value), found.tolist()) == (20, [2] * 5)
    assert jax.vjp(lambda x: scale.jax(x, 2.0), x)[1](x)[0].tolist() == (2 * x).tolist()
    assert jax.jacrev(lambda x: scale.jax(x, 2.0))(x).tolist() == (2 * jnp.eye(5)).tolist()
    assert jax.linearize(lambda x: scale.jax(x, 2.0), x)[0].tolist() == (2 * x).tolist()
    square = jax.jacrev(jax.jacrev(lambda x: (scale.jax(x, 2.0) ** 2).sum()))
    assert jax.jit(square)(x).tolist() == (8 * jnp.eye(5)).tolist()
    # Arguments without a gradient flow need none.
    assert jax.grad(lambda w: (scale.jax(x, 2.0) * w).sum())(x).tolist() == (2 * x).tolist()
    whole = jax.grad(lambda x: total(x).astype(float), allow_int=True)(jnp.arange(3))
    assert whole.dtype == jax.dtypes.float0


def test_a_function_inside_of_gradients_by_hand(scale, x):
    """jax.custom_vjp around a function that has no gradient itself."""

    @jax.custom_vjp
    def tripled(x):
        return scale.jax(x, 3.0)

    tripled.defvjp(lambda x: (tripled(x), None), lambda _, grad: (scale.jax(grad, 3.0),))
    assert jax.jit(jax.grad(lambda x: tripled(x).sum()))(x).tolist() == [3] * 5

    @jax.custom_jvp
    def doubled(x):
        return scale.jax(x, 2.0)

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))
    assert jax.jvp(doubled, (x,), (x,))[1].tolist() == (2 * x).tolist()
    assert jax.jit(jax.grad(lambda x: doubled(x).sum()))(x).tolist() == [2] * 5


@pytest.mark.parametrize("transform", ["jvp", "jacfwd", "hessian"])
def test_forward_mode_is_not_there(scale, x, transform):
    scale.backward(lambda grad, factor: scale.jax(grad, factor))
    calls = {
        "jvp": lambda: jax.jvp(lambda x: scale.jax(x, 2.0), (x,), (x,)),
        "jacfwd": lambda: jax.jacfwd(lambda x: scale(x, 2.0))(x),
        "hessian": lambda: jax.hessian(lambda x: scale.jax(x, 2.0).sum())(x),
    }
    with pytest.raises(TypeError, match=r"forward.mode"):
        calls[transform]()
