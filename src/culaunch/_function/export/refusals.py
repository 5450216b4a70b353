"""The refusals of export, by name."""

from __future__ import annotations

from typing import Any


def refusal(function: str, what: str, place: Any = None) -> TypeError:
    """Return the error for an operation that a library without Python cannot do."""
    where = "" if place is None else f"at {place}: "
    return TypeError(f"{where}{function} cannot be exported: {what}")
