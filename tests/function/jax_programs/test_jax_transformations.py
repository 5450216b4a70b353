"""Functions under what JAX does to programs: batches, loops, conditions, checkpoints."""

from __future__ import annotations

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.mark.parametrize(
    "way",
    [
        "sequential",
        "sequential_unrolled",
        "broadcast_all",
        lambda size, batched, x, factor: x * factor,
    ],
    ids=["sequential", "sequential_unrolled", "broadcast_all", "rule"],
)
def test_batches(scale, way):
    operator = cl.frameworks.jax_op(scale, vmap=way)
    rows = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    assert jax.vmap(lambda x: operator(x, 3.0))(rows).tolist() == (rows * 3).tolist()
    columns = jax.vmap(lambda x: operator(x, 3.0), in_axes=1, out_axes=1)
    assert jax.jit(columns)(rows).tolist() == (rows * 3).tolist()


def test_what_a_batch_gives_a_call(kernels):
    """Sequential: once for each row. Broadcast: once, with one dimension more."""

    @cl.function
    def ranked(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][cl.ceildiv(x.size, 64), 64](y, x, x.ndim * 1.0, x.size)
        return y

    rows = jnp.ones((4, 3))
    for way, factor in (("sequential", 1), ("sequential_unrolled", 1), ("broadcast_all", 2)):
        found = jax.vmap(cl.frameworks.jax_op(ranked, vmap=way))(rows)
        assert found.tolist() == [[factor] * 3] * 4


def test_loops_and_conditions(scale, x):
    def program(x):
        x = jax.lax.fori_loop(0, 3, lambda _, x: scale.jax(x, 2.0), x)
        return jax.lax.cond(x.sum() > 0, lambda x: scale.jax(x, 0.5), lambda x: x, x)

    assert jax.jit(program)(x).tolist() == (x * 4).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["sequential", "sequential_unrolled", "broadcast_all"])
def test_batches_of_what_is_written_and_of_gradients(scale, bump, way):
    scale.backward(lambda grad, factor: scale(grad, factor))
    bumped = cl.frameworks.jax_op(bump, vmap=way)
    rows = jnp.ones((2, 3))
    assert jax.vmap(lambda x: bumped(x, 2.0))(rows).tolist() == [[3] * 3] * 2
    one = jax.vmap(lambda x, y: bumped(x, 2.0) + y, in_axes=(None, 0))
    assert one(rows[0], rows).tolist() == [[4] * 3] * 2
    operator = cl.frameworks.jax_op(scale, vmap=way)
    inside = jax.grad(lambda x: jax.vmap(lambda x: operator(x, 2.0))(x).sum())
    assert inside(rows).tolist() == [[2] * 3] * 2
    twice = jax.vmap(jax.vmap(lambda x: operator(x, 2.0)))
    assert twice(rows).tolist() == [[2] * 3] * 2


@pytest.mark.slow
def test_scans_and_loops(scale, bump, x):
    scale.backward(lambda grad, factor: scale(grad, factor))

    def scanned(x):
        return jax.lax.scan(lambda c, _: (scale.jax(c, 2.0), c.sum()), x, None, length=3)

    last, sums = jax.jit(scanned)(x)
    assert (last.tolist(), sums.tolist()) == ((8 * x).tolist(), [10, 20, 40])
    assert jax.jit(jax.grad(lambda x: scanned(x)[0].sum()))(x).tolist() == [8] * 5
    assert jax.lax.map(lambda x: scale.jax(x, 2.0), jnp.ones((2, 3))).tolist() == [[2] * 3] * 2

    def until(step):
        return jax.jit(lambda x: jax.lax.while_loop(lambda x: x.sum() < 100, step, x))(x)

    assert until(lambda x: scale.jax(x, 2.0)).tolist() == (16 * x).tolist()
    # A loop writes to its own memory: the argument stays the same.
    assert until(lambda x: bump.jax(x, 2.0)).tolist() == (x + 18).tolist()
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_branches(scale, x):
    scale.backward(lambda grad, factor: scale(grad, factor))

    def chosen(x):
        return jax.lax.cond(x.sum() > 0, lambda x: scale.jax(x, 2.0), lambda x: x, x)

    assert jax.jit(chosen)(-x).tolist() == (-x).tolist()
    assert jax.jit(jax.grad(lambda x: chosen(x).sum()))(x).tolist() == [2] * 5
    branches = [lambda x: scale.jax(x, 2.0), lambda x: x]
    switch = jax.vmap(lambda i, x: jax.lax.switch(i, branches, x))
    assert jax.jit(switch)(jnp.array([0, 1]), jnp.ones((2, 3))).tolist() == [[2] * 3, [1] * 3]


@pytest.mark.slow
@pytest.mark.parametrize("is_jitted", [True, False], ids=["jit", "at once"])
def test_checkpoints(scale, bump, x, is_jitted):
    """The function also recomputes the values of the forward pass."""
    scale.backward(lambda grad, factor: scale(grad, factor))

    def total(x):
        return (scale.jax(jnp.sin(x), 2.0) ** 2).sum()

    found = jax.grad(lambda x: jax.checkpoint(total)(x))
    expected = jax.grad(lambda x: ((2 * jnp.sin(x)) ** 2).sum())(x)
    assert jnp.allclose((jax.jit(found) if is_jitted else found)(x), expected)
    again = jax.checkpoint(lambda x: bump.jax(x, 2.0))
    assert (jax.jit(again) if is_jitted else again)(x).tolist() == (x + 2).tolist()


def test_donated_arrays(bump, x):
    """One argument, written twice and read: XLA copies what it must."""
    program = jax.jit(lambda x: (bump.jax(x, 2.0), bump.jax(x, 3.0), x + 0), donate_argnums=0)
    assert [one.tolist() for one in program(x + 0)] == [
        (x + 2).tolist(), (x + 3).tolist(), x.tolist(),
    ]  # fmt: skip


@pytest.mark.slow
def test_programs_that_are_looked_at(scale, x):
    """Compiled ahead of time, without a compiler, and with the checks of JAX."""
    program = jax.jit(lambda x: scale.jax(x, 2.0))
    lowered = program.lower(x)
    assert "culaunch_function" in lowered.as_text()
    assert lowered.compile()(x).tolist() == (2 * x).tolist()
    for context in (jax.disable_jit(), jax.debug_nans(True), jax.checking_leaks()):
        with context:
            assert jax.jit(lambda x: scale.jax(x, 2.0))(x).tolist() == (2 * x).tolist()
    flipped = jax.jit(lambda x: scale.jax(x.T, 2.0))(jnp.arange(6.0).reshape(2, 3))
    assert flipped.tolist() == [[0, 6], [2, 8], [4, 10]]
