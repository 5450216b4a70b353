"""tcgen05.cp: one thread copies from shared memory to tensor memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.matrix.tcgen05 import padded
from culaunch._emulator.ops.factors import read_factor, tcgen05_descriptors

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.ptx.syntax import Instruction

__all__ = ["copy_in"]

# For each multicast, the lanes of the four warps that get a row of the source, by its first lane.
_COPIES = {
    "": ((0,),),
    "warpx4": ((0, 32, 64, 96),),
    "warpx2::02_13": ((0, 64), (32, 96)),
    "warpx2::01_23": ((0, 32), (64, 96)),
}


def copy_in(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode a copy from shared memory, which is complete at once."""
    mods = instruction.mods
    match = next(filter(None, (re.fullmatch(r"(\d+)x(\d+)b", word) for word in mods)), None)
    if match is None:
        raise Unsupported
    rows, size = int(match[1]), int(match[2]) // 8
    # A source of 4 or 6 bits, 16 elements for each 16 bytes.
    narrow = next((int(word[1]) for word in mods if re.fullmatch(r"b[46]x16_p\d+", word)), 8)
    targets = next((_COPIES[word] for word in mods if word in _COPIES), _COPIES[""])
    address = decoder.address(instruction.operands[0])
    descriptor = decoder.read(instruction.operands[1], "b64")
    pair = "cta_group::2" in mods

    def run(group: Group) -> None:
        index = np.arange(group.n)
        start = np.broadcast_to(address(group), (group.n,)).astype(np.int64)
        at = tcgen05_descriptors(group, np.broadcast_to(descriptor(group), (group.n,)))
        own, memory = np.broadcast_to(group.block_index, (group.n,)), group.chunk.tensor_memory
        for block in (own & ~1, own | 1) if pair else (own,):
            octets = read_factor(
                group, at, index, block, np.arange(rows)[None, :], size, 1,
                transposed=False, reader="tcgen05.cp",
            )  # fmt: skip
            if narrow < 8:
                octets = padded(octets, narrow) << (2 if narrow == 4 else 0)
            words = np.ascontiguousarray(octets).view(np.uint32)
            column = (start & 0xFFFF)[:, None, None] + np.arange(size // 4)
            share = rows // len(targets)
            for part, firsts in enumerate(targets):
                for first in firsts:
                    lane = (start >> 16)[:, None] + first + np.arange(share)
                    b = block[:, None, None]
                    memory.check(group, index, b, lane[:, :, None], column)
                    source = words[:, part * share : (part + 1) * share]
                    memory.words[b, lane[:, :, None], column] = source
            if group.chunk.races is not None:
                now = group.chunk.races.history.tick()
                memory.written[block[:, None], column[:, 0]] = now

    return run
