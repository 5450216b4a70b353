"""Changes between the calls of a program of JAX, and calls from many threads."""

from __future__ import annotations

import threading

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")


def test_a_global_that_changes(kernels, x):
    factor = 2.0

    @cl.function
    def scaled(x):
        y = cl.empty_like(x)
        kernels["scale<float>"][1, 64](y, x, factor, x.size)
        return y

    program = jax.jit(scaled.jax)
    assert program(x).tolist() == (x * 2).tolist()
    factor = 3.0
    # The compiled program calls the function, which notices.
    assert program(x).tolist() == (x * 3).tolist()
    assert scaled.jax(x).tolist() == (x * 3).tolist()


def test_a_result_that_changes_is_an_error(kernels, x):
    more = 0

    @cl.function
    def made(x):
        return cl.zeros((x.size + more,), "float32")

    program = jax.jit(made.jax)
    assert program(x).shape == (5,)
    more = 1
    with pytest.raises(Exception, match="returned different arrays than when jax"):
        program(x).block_until_ready()
    assert made.jax(x).shape == (6,)


def test_an_error_while_a_program_runs(kernels, x):
    wrong = "add"

    @cl.function
    def changed(x):
        y = cl.zeros_like(x)
        kernels[wrong][1, 64](y, 1.0, x.size)
        return y

    program = jax.jit(changed.jax)
    assert program(x).tolist() == [1] * 5
    wrong = "scale<double>"
    with pytest.raises(Exception, match=r"TypeError: .*scale"):
        program(x).block_until_ready()


def test_many_threads(scale, x):
    program = jax.jit(lambda x, y: scale.jax(x, 2.0) + scale.jax(y, 3.0))
    found = []

    def call(i):
        for _ in range(5):
            found.append(program(x * i, x)[1].item() == 2 * i + 3)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20


def test_one_plan_for_calls_that_are_alike(scale, x):
    operator = cl.frameworks.jax_op(scale)
    traces = []

    @jax.jit
    def program(x):
        traces.append(1)
        return operator(x, 2.0) + operator(x + 1, 2.0)

    for _ in range(3):
        assert program(x).tolist() == [2, 6, 10, 14, 18]
        operator(x, 2.0)
    assert len(traces) == 1
    assert len(operator._plans) == 1
    operator(x, 3.0)
    operator(x[1:], 2.0)
    assert len(operator._plans) == 3
