"""Times and amounts as texts."""

from __future__ import annotations


def time_text(milliseconds: float) -> str:
    """Return a time in the unit that suits it: seconds, milliseconds or microseconds."""
    for unit, factor in (("s", 1e-3), ("ms", 1.0)):
        if milliseconds * factor >= 1:
            return f"{milliseconds * factor:.4g} {unit}"
    return f"{milliseconds * 1e3:.4g} us"


def scaled_text(value: float) -> str:
    """Return an amount and the prefix of its unit, such as ``"3.35 T"``."""
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= factor:
            return f"{value / factor:.4g} {prefix}"
    return f"{value:.4g} "
