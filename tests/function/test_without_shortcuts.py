"""Functions use the longer path if a shortcut is not known to be right, with the same results."""

import math

import numpy as np
import pytest

import culaunch as cl
from culaunch import _core

pytestmark = pytest.mark.usefixtures("emulated")

FACTOR = 2
NUMBERS = [0, 1, -1, 2**30 - 1, 2**30, -(2**30), 2**40, -(2**62), 2**62]
FLOATS = [0.5, -0.0, 5e-324, 1e300, math.inf]


@pytest.fixture(params=["numbers", "dicts"])
def without(request):
    """Call functions as if the trial of a shortcut failed."""
    _core.use_shortcut(request.param, False)
    yield request.param
    _core.use_shortcut(request.param, True)


def test_numbers_and_globals_are_read_all_the_same(without, monkeypatch):
    traced = []

    @cl.function
    def noted(x, n: int, a: float):
        traced.append(FACTOR)
        return x.shape[0] * FACTOR, n, a * 2

    x = np.zeros(5, "f4")
    for n in NUMBERS:
        for a in FLOATS:
            assert repr(noted(x, n, a)) == repr((10, n, a * 2))
    assert traced == [2]
    # A global that the body reads: a change is noticed whether dicts are watched or
    # compared.
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert noted(x, 1, 1.0) == (15, 1, 2.0)
    assert traced == [2, 3]


@pytest.mark.needs("torch")
@pytest.mark.parametrize("shortcut", ["torch", "places"])
def test_tensors_are_read_all_the_same(shortcut):
    import torch

    @cl.function
    def facts(x):
        return x.shape[0], x.strides[0], x.is_contiguous()

    tensors = [torch.zeros(4, 3), torch.zeros(4, 3).t(), torch.zeros(0, 2), torch.zeros(6)[::2]]
    expected = [facts(x) for x in tensors]
    assert expected == [(4, 3, True), (3, 1, False), (0, 2, True), (3, 2, False)]
    _core.use_shortcut(shortcut, False)
    try:
        assert [facts(x) for x in tensors] == expected
        with pytest.raises(TypeError, match="resolve_conj"):
            facts(torch.zeros(3, dtype=torch.complex64).conj())
    finally:
        _core.use_shortcut(shortcut, True)
