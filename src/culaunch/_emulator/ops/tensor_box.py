"""A box of a tensor that one lane copies, and its place in shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import ILLEGAL_INSTRUCTION, Fault
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load
from culaunch._emulator.memory.how import BULK, COUNTED
from culaunch._emulator.ops.atomics import atomic_update
from culaunch._emulator.ops.bulk_units import UNIT, each_unit, read_units, to_rank, write_units

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.memory.tensor_map import TensorMap
    from culaunch._emulator.types import Lanes

# For each number of CUtensorMapSwizzle, the bits of a shared-memory address that are flipped, and
# how much higher the bits are that flip them. Chunks of 16 bytes change places within rows of 32,
# 64 and 128 bytes; chunks of 32 and 64 bytes, within rows of 128 bytes.
_SWIZZLES = {1: (0x10, 3), 2: (0x30, 3), 3: (0x70, 3), 4: (0x60, 2), 6: (0x40, 1)}
# The element type of a reduction, by CUtensorMapDataType.
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32", "f32", "f32")
_NANS = {2: 0x7FF7, 4: 0x7FF77FF7, 8: 0x7FF77FF77FF77FF7}  # as an H200 fills


def swizzled(address: Lanes, swizzle: int) -> Lanes:
    """Return where a chunk is that would be at `address` without the swizzle."""
    if not swizzle:
        return address
    mask, shift = (address.dtype.type(number) for number in _SWIZZLES[swizzle])
    place: Lanes = address ^ address >> shift & mask
    return place


class Box:
    """A box of a tensor that one lane copies, and its place in shared memory.

    Each `unit` bytes in global memory are 16 in shared memory.
    """

    def __init__(
        self, group: Group, lane: int, tensor: TensorMap, at: Lanes, shared: Lanes, unit: int
    ) -> None:
        self.group, self.lane, self.tensor, self.unit = group, lane, tensor, unit
        if int(shared[0]) % 128:
            reason = f"the shared address {int(shared[0]):#x} is not a multiple of 128"
            raise Fault(ILLEGAL_INSTRUCTION, reason, lane=group.lane_at(lane))
        self.valid = ((at >= 0) & (at < np.array(tensor.extents)[:, None])).all(axis=0)
        offset = (at * np.array(tensor.strides)[:, None]).sum(axis=0)
        self.address = (np.int64(tensor.address) + offset[self.valid]).astype(np.uint64)
        # The mbarrier counts the bytes without padding.
        self.counted = tensor.item_size * self.valid.shape[0]
        self.size = self.counted * UNIT // unit
        units = np.arange(0, self.size, UNIT).astype(shared.dtype)
        self.shared = swizzled(shared + units, tensor.swizzle)

    def load(self) -> Lanes:
        """Read the box; elements outside of the tensor are zero, or NaN."""
        item = self.tensor.item_size
        out = np.full(self.valid.shape, _NANS[item] if self.tensor.fill else 0, f"u{item}")
        if self.address.shape[0]:
            part = self._part(self.address.shape[0])
            pieces = LOCATORS["global"](part, self.address, item, "read")
            out[self.valid] = load(part, pieces, item, 1)[0]
        if self.unit < UNIT:
            # Padding has no value on a GPU.
            padded = np.zeros((self.size // UNIT, UNIT), out.dtype)
            padded[:, : self.unit] = out.reshape(-1, self.unit)
            return padded.reshape(-1)
        return out

    def put(self, values: Lanes, rank: int | None) -> None:
        """Write the box to shared memory."""
        words = values.view(np.uint64).reshape(-1, 2)
        part = self._part(words.shape[0])
        where = to_rank(self.shared, rank)
        write_units(part, "shared", where, [words[:, 0], words[:, 1]], None, COUNTED)

    def store(self, reduction: str | None) -> None:
        """Copy from shared memory to the part of the box that is inside the tensor."""
        item = self.tensor.item_size
        part = self._part(self.shared.shape[0])
        words = np.stack(read_units(part, "shared", self.shared, 8, BULK), axis=1)
        values = words.reshape(-1).view(f"u{item}")[self.valid]
        if values.shape[0]:
            how = None if reduction is None else atomic_update(reduction, _TYPES[self.tensor.kind])
            part = self._part(values.shape[0])
            write_units(part, "global", self.address, [values], how, BULK)

    def _part(self, count: int) -> Group:
        return each_unit(self.group, np.full(count, self.lane))
