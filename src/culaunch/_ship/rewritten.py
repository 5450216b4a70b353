"""Programs with something more at their beginning: conversions of arguments, a guard."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from culaunch._function import opcodes as oc

if TYPE_CHECKING:
    from collections.abc import Iterator

_ARG_F, _ARG_I, _I2F, _CONST, _ATTRIBUTE, _EQ, _AND = (
    oc.OPS[name].number
    for name in ("ARG_F", "ARG_I", "I2F", "CONST_I", "DEVICE_ATTRIBUTE", "EQ", "AND_B")
)
_MAJOR, _MINOR = 75, 76  # CUdevice_attribute, of the compute capability


class Words:
    """The words of a program that the extension has checked, block by block.

    Attributes
    ----------
    registers : int
    blocks : list of list of int
    """

    def __init__(self, data: bytes) -> None:
        numbers = struct.unpack(f"<{len(data) // 8}q", data)
        self.registers: int
        self._version, self.registers, self._given, self._arrays, count = numbers[:5]
        at = 5 + count
        self.blocks: list[list[int]] = []
        for size in numbers[5:at]:
            self.blocks.append(list(numbers[at : at + size]))
            at += size

    def data(self) -> bytes:
        """Return them as they lie in a file."""
        made = [self._version, self.registers, self._given, self._arrays, len(self.blocks)]
        made += map(len, self.blocks)
        made += [word for block in self.blocks for word in block]
        return struct.pack(f"<{len(made)}q", *made)

    def new(self) -> int:
        """Return a register that is not used yet."""
        self.registers += 1
        return self.registers - 1


def with_ints(data: bytes, parameters: frozenset[int]) -> bytes:
    """Return a program that takes ints for some parameters, which it took as floats.

    Parameters
    ----------
    data : bytes
        Of a program that the extension has checked.
    parameters : frozenset[int]
        Whose arguments are ints.
    """
    words = Words(data)
    for number, block in enumerate(words.blocks):
        made: list[int] = []
        for record in _plan_of(block):
            if record[0] & 0xFFFFFFFF == _ARG_F and record[2] in parameters:
                # The int goes into a register of its own, and the float into the one that the
                # program reads.
                given = words.new()
                made += [*_record(_ARG_I, given, record[2]), *_record(_I2F, record[1], given)]
            else:
                made += record
        words.blocks[number] = made
    return words.data()


def with_capability(data: bytes, capability: int) -> bytes:
    """Return a program that runs only on devices of one compute capability (10 major + minor).

    On other devices it reports an unknown path, as if this one had not been traced.
    """
    words = Words(data)
    made: list[int] = []
    conditions = []
    for attribute, value in zip((_MAJOR, _MINOR), divmod(capability, 10), strict=True):
        have, wanted, condition = words.new(), words.new(), words.new()
        made += _record(_ATTRIBUTE, have, attribute) + _record(_CONST, wanted, value)
        made += _record(_EQ, condition, have, wanted)
        conditions.append(condition)
    both = words.new()
    made += _record(_AND, both, *conditions) + _record(oc.GUARD, both, 1, -1)
    for block in words.blocks:
        # A guard is the end of its block: its two sides are the last words.
        if _is_guarded(block):
            # One block more stands before them; a negative number is a way that is not there.
            block[-2:] = [one + 1 if one >= 0 else one for one in block[-2:]]
    # The first block is where a program begins.
    words.blocks.insert(0, made)
    return words.data()


def _plan_of(block: list[int]) -> Iterator[list[int]]:
    """Yield the instructions of a block, and then the whole of its end."""
    at = 0
    while at < len(block):
        number, length = block[at] & 0xFFFFFFFF, block[at] >> 32
        if number in (oc.GUARD, oc.EFFECTS):
            yield block[at:]
            return
        yield block[at : at + length]
        at += length


def _is_guarded(block: list[int]) -> bool:
    *_, end = _plan_of(block)
    return bool(end[0] & 0xFFFFFFFF == oc.GUARD)


def _record(number: int, *operands: int) -> list[int]:
    return [number | (len(operands) + 1) << 32, *operands]
