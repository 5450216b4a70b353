"""An int where a program reads a float: the same program, with the conversion in it."""

from __future__ import annotations

import struct

from culaunch._function import opcodes as oc


def with_ints(words: bytes, parameters: frozenset[int]) -> bytes:
    """Return a program that takes ints for some parameters, which it took as floats.

    Parameters
    ----------
    words : bytes
        Of a program that the extension has checked.
    parameters : frozenset[int]
        Whose arguments are ints.
    """
    numbers = struct.unpack(f"<{len(words) // 8}q", words)
    version, registers, array_arguments, arrays, count = numbers[:5]
    at = 5 + count
    blocks: list[list[int]] = []
    for size in numbers[5:at]:
        end = at + size
        block: list[int] = []
        while at < end:
            number, length = numbers[at] & 0xFFFFFFFF, numbers[at] >> 32
            if number in (oc.GUARD, oc.EFFECTS):
                break
            record = numbers[at : at + length]
            if number == _ARG_F and record[2] in parameters:
                block += [_ARG_I | 3 << 32, registers, record[2]]
                block += [_I2F | 3 << 32, record[1], registers]
                registers += 1
            else:
                block += record
            at += length
        blocks.append([*block, *numbers[at:end]])
        at = end
    made = [version, registers, array_arguments, arrays, count, *map(len, blocks)]
    made += [word for block in blocks for word in block]
    return struct.pack(f"<{len(made)}q", *made)


_ARG_I, _ARG_F, _I2F = (oc.OPS[name].number for name in ("ARG_I", "ARG_F", "I2F"))
