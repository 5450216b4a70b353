"""How far apart two numbers are by ratio, where 1000 is as far from 2000 as 1 from 2."""

from __future__ import annotations

import math


def ratio_between(one: object, other: object) -> float | None:
    """Return the ratio of two numbers in powers of two; None if they are not comparable."""
    if not (_is_comparable(one) and _is_comparable(other)):
        return None
    # With 1 added, since 0 has no logarithm.
    return abs(math.log2(one + 1) - math.log2(other + 1))  # type: ignore[operator]


def _is_comparable(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]
