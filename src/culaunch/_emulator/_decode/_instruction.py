"""Instruction names and the functions that decode them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from culaunch._emulator._ptx._syntax import Instruction
from culaunch._emulator._simt._state import Op

if TYPE_CHECKING:
    from culaunch._emulator._decode._decoder import Decoder

__all__ = ["DECODERS", "EFFECTS", "decodes"]

DecodeFunction = Callable[["Decoder", Instruction], Op]

DECODERS: dict[str, DecodeFunction] = {}
# Instructions that do more than write registers: a guard must keep the other lanes out of them.
EFFECTS: set[str] = set()


def decodes(*names: str, effects: bool = False) -> Callable[[DecodeFunction], DecodeFunction]:
    """Register a function as the decoder of the instructions `names`.

    With `effects` the instruction touches memory or other lanes: under a guard it runs for the
    lanes whose guard is true only. Without, it runs for all and the guard chooses the result.
    """

    def register(function: DecodeFunction) -> DecodeFunction:
        for name in names:
            DECODERS[name] = function
            if effects:
                EFFECTS.add(name)
        return function

    return register
