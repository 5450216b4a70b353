"""Constants make kernels of their own by type and value, whatever compares equal to them."""

import pytest

pytestmark = pytest.mark.needs("triton", "torch")


@pytest.fixture
def x():
    import torch

    return torch.zeros(64)


@pytest.fixture
def constant():
    from constant_kernels import constant

    return constant


GROUPS = [
    (True, 1, 1.0),
    (False, 0, 0.0, -0.0),
    ((True,), (1,), (1.0,)),
    ((0.0, 2), (-0.0, 2), (False, 2)),
    ((3, 4), (3.0, 4), (3, (4,))),
    ((), None),
]


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("by_name", [False, True])
def test_equal_constants_of_different_types_are_different(recorder, x, constant, group, by_name):
    from culaunch.triton import native

    kernel = native(constant)

    def launched(value):
        made = kernel[(1,)](x, V=value) if by_name else kernel[(1,)](x, value)
        return made.hash, recorder.last.kernel

    for order in (group, tuple(reversed(group))):
        kernel._clear()
        found = [launched(value) for value in (*order, *order)]
        hashes = [one for one, _ in found]
        assert hashes[: len(order)] == hashes[len(order) :]
        assert len(set(hashes)) == len(order)
    # Triton's own table, which is shared, does not answer for another type, either.
    assert kernel._key_count == len(group)


def test_warm_up_tells_them_apart_too(recorder, x, constant):
    from culaunch.triton import native

    kernel = native(constant)
    made = [kernel.warmup(x, value, grid=(1,)) for value in (True, 1, 1.0)]
    assert len({one.hash for one in made}) == 3


def test_a_tuple_of_one_is_not_its_item(recorder, x, constant):
    import triton.language as tl

    from culaunch.triton import native

    kernel = native(constant)
    for item in (tl.float16, 5, tl.constexpr(3)):
        values = (item, (item,), ((item,),))
        count = kernel._key_count
        made = [kernel[(1,)](x, value).hash for value in (*values, *values)]
        assert made[:3] == made[3:]
        assert len(set(made)) == 3
        assert kernel._key_count == count + 3


@pytest.mark.parametrize("value", [(), (3, 4), (5,), ((1, 2), 3), (True, None)], ids=str)
def test_tuples_are_constants(recorder, x, constant, value):
    from culaunch.triton import native

    kernel = native(constant)
    first = kernel[(1,)](x, value)
    assert kernel[(1,)](x, value) is first
    assert kernel[(1,)](x, V=value) is first


def test_tuples_are_constants_by_default_and_of_an_autotuner(recorder, x):
    import triton
    from constant_kernels import constant, tuple_by_default

    from culaunch.triton import native

    kernel = native(tuple_by_default)
    assert kernel[(1,)](x) is not kernel[(1,)](x, (6, 5))
    config = triton.Config({"V": (7, 8)})
    native(triton.autotune([config], key=[])(constant))[(1,)](x)
    assert len(recorder.launches) == 3


def test_a_constexpr_is_a_default(recorder, x):
    from constant_kernels import constexpr_by_default

    from culaunch.triton import native

    kernel = native(constexpr_by_default)
    for _ in range(3):
        first = kernel[(1,)](x)
    assert kernel[(1,)](x, 4) is not first
    assert kernel._key_count == 2


def test_not_a_number_is_one_constant(recorder, x, constant):
    import numpy as np

    from culaunch.triton import native

    kernel = native(constant)
    for make in (lambda: np.float64("nan"), lambda: np.float32("nan"), lambda: float("nan")):
        before = kernel._key_count
        for _ in range(5):
            kernel._call_plain((1,), (x, make()), {})
        assert kernel._key_count == before + 1
    kernel[(1,)](x, np.float64(0.0))
    before = kernel._key_count
    kernel[(1,)](x, np.float64(-0.0))
    assert kernel._key_count == before + 1


@pytest.mark.slow
def test_tuples_nested_too_deeply_are_an_error(recorder, x, constant):
    from culaunch.triton import native

    kernel = native(constant)
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(RecursionError):
        kernel[(1,)](deep, 1)
    with pytest.raises(RecursionError):
        kernel[(1,)](x, deep)
