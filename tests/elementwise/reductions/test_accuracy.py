"""How far reductions are from the exact results: the table in docs/elementwise.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from culaunch import elementwise as ew

PAGE = Path(__file__).resolve().parents[3] / "docs" / "elementwise.md"


def normal(size):
    return np.random.default_rng(0).standard_normal(size).astype(np.float32)


def uniform(size):
    return np.random.default_rng(0).random(size).astype(np.float32)


def softmax(x):
    e = ew.exp(x - ew.max(x))
    return e / ew.sum(e)


def exact_sum(mp, x):
    return mp.fsum(map(float, x))


def exact_var(mp, x):
    values = list(map(mp.mpf, map(float, x)))
    mean = mp.fsum(values) / len(values)
    return mp.fsum((one - mean) ** 2 for one in values) / len(values)


def exact_softmax(mp, x):
    values = [mp.exp(mp.mpf(float(one))) for one in x]
    total = mp.fsum(values)
    return [one / total for one in values]


CASES = {
    "`sum`, uniform": (lambda x: ew.sum(x), exact_sum, uniform),
    "`var`, normal + 1000": (
        lambda x: ew.var(x),
        exact_var,
        lambda n: normal(n) + np.float32(1000),
    ),
    "`logsumexp`, normal": (
        lambda x: ew.logsumexp(x),
        lambda mp, x: mp.log(mp.fsum(mp.exp(mp.mpf(float(one))) for one in x)),
        normal,
    ),
    "`norm`, normal": (
        lambda x: ew.norm(x),
        lambda mp, x: mp.sqrt(mp.fsum(mp.mpf(float(one)) ** 2 for one in x)),
        normal,
    ),
    "softmax, normal": (softmax, exact_softmax, normal),
}
SIZES = (128, 4096, 65536)


def on_page():
    """Return the bounds that the page has, in units in the last place."""
    rows = re.findall(
        r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    return {name: tuple(map(float, bounds)) for name, *bounds in rows}


@pytest.mark.slow
@pytest.mark.needs("mpmath")
@pytest.mark.parametrize("name", CASES)
def test_errors_are_within_the_bounds_of_the_page(name):
    import mpmath as mp

    mp.mp.prec = 120
    function, exact, make = CASES[name]
    fused = ew.fuse(function)
    for size, bound in zip(SIZES, on_page()[name], strict=True):
        x = make(size)
        got = np.atleast_1d(fused(x))
        right = exact(mp, x)
        right = right if isinstance(right, list) else [right]
        errors = [
            abs(mp.mpf(float(one)) - other) / mp.mpf(float(np.spacing(np.float32(abs(other)))))
            for one, other in zip(got, right, strict=True)
        ]
        worst = float(max(errors))
        print(f"{name} {size}: {worst:.2f} ulp")
        assert worst <= bound
