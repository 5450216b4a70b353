"""``KeyKind``: how a decorator's choice depends on an argument. Native code compares by it."""

from __future__ import annotations

import enum

from culaunch._core import NUMBERS

_KINDS = NUMBERS["TritonKeyKind"]


class KeyKind(enum.IntEnum):
    """How a choice depends on an argument."""

    VALUE = _KINDS["VALUE"]  # as an autotuner's: on its value, of any type
    NUMBER = _KINDS["NUMBER"]  # on its value: a number, a bool, a str or None
    NONE = _KINDS["NONE"]  # on whether it is given, and None
    TYPE = _KINDS["TYPE"]
    # On one number of a tensor:
    SIZE = _KINDS["SIZE"]
    STRIDE = _KINDS["STRIDE"]
    RANK = _KINDS["RANK"]
    COUNT = _KINDS["COUNT"]  # the number of its elements

    @property
    def is_of_shape(self) -> bool:
        """Whether it is one number of a tensor."""
        return self >= KeyKind.SIZE
