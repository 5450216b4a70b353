"""cp.async.bulk.tensor: boxes of a tensor between global and shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.fault import ILLEGAL_INSTRUCTION, Fault
from culaunch._emulator.machine.spaces import LOCATORS
from culaunch._emulator.memory.bytes import load
from culaunch._emulator.memory.how import BULK, COUNTED
from culaunch._emulator.memory.shared import named_rank
from culaunch._emulator.memory.tensor_boxes import box_elements, misuse
from culaunch._emulator.memory.tensor_map import MAP_BYTES, PACKED, TensorMap
from culaunch._emulator.ops.atomics import atomic_update
from culaunch._emulator.ops.bulk_units import (
    REDUCTIONS,
    UNIT,
    each_unit,
    read_units,
    target_ranks,
    to_rank,
    write_units,
)
from culaunch._emulator.ops.mbarrier import complete_bytes
from culaunch._emulator.ptx.syntax import Address, Instruction, Operand, Vector

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
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


def tensor_copy(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode a copy of a box, which happens at once."""
    mods = instruction.mods
    mode = next((word for word in mods if word.startswith(("tile", "im2col"))), "tile")
    if mode == "im2col_no_offs::w":
        raise Unsupported(f"a copy in the mode {mode}")
    operands = list(instruction.operands)
    loads = "mbarrier::complete_tx::bytes" in mods
    tensor = operands[1 if loads else 0]
    if not isinstance(tensor, Vector):
        raise Unsupported
    descriptor = decoder.address(Address(tensor.items[0]))
    coordinates = [decoder.read(one, "s32") for one in decoder.vector(tensor.items[1])]
    inside = decoder.address(operands[0 if loads else 1])
    rest: list[Operand] = operands[2:]
    barrier = decoder.address(rest.pop(0)) if loads else None
    moved = decoder.vector(rest.pop(0)) if rest and isinstance(rest[0], Vector) else []
    offsets = [decoder.read(one, "u16") for one in moved]
    ranks = target_ranks(decoder, instruction, rest)
    pair = "cta_group::2" in mods
    named = [word for word in mods if word in REDUCTIONS]
    reduction = named[0] if mods[0] == "reduce" else None

    def run(group: Group) -> None:
        places = _each(group, descriptor(group))
        starts = [_each(group, read(group).astype(np.int32)) for read in coordinates]
        shifts = [_each(group, read(group)) for read in offsets]
        shared = _each(group, inside(group))
        barriers = None if barrier is None else _each(group, barrier(group))
        chosen = list(ranks(group))
        for lane in range(group.n):
            tensor_map = _read_map(group, lane, places[lane])
            start, shift = ([int(one[lane]) for one in each] for each in (starts, shifts))
            wrong = misuse(tensor_map, mode, start, shift)
            unit, packed = UNIT, PACKED.get(tensor_map.kind)
            if packed and not wrong:
                unit = UNIT * packed[0] // packed[1]
                if unit < UNIT and (not loads or start[0] % 128):
                    wrong = "a store of padded elements, or a first coordinate that is no multiple "
                    wrong += f"of 128 ({start[0]})"
                start[0] = start[0] * packed[0] // 16
                tensor_map = tensor_map.in_bytes()
            if loads and not wrong and start[0] * tensor_map.item_size % UNIT:
                # An H200 raises it for loads; stores were not tried.
                wrong = f"the first coordinate {start[0]} is not a multiple of 16 bytes"
            if wrong:
                raise Fault(ILLEGAL_INSTRUCTION, wrong, lane=group.lane_at(lane))
            at = box_elements(tensor_map, mode, start, shift)
            box = _Box(group, lane, tensor_map, at, shared[lane : lane + 1], unit)
            if barriers is None:
                box.store(reduction)
                continue
            words = box.load()
            for rank, mask in chosen:
                if mask[lane]:
                    box.put(words, rank)
                    at_barrier = barriers[lane : lane + 1]
                    arrived = to_rank(at_barrier, _barrier_rank(group, at_barrier, rank, pair=pair))
                    size = np.array([box.counted], np.uint64)
                    complete_bytes(group.narrow(np.array([lane])), arrived, "shared", size)

    return run


def _barrier_rank(group: Group, barrier: Lanes, rank: int | None, *, pair: bool) -> int | None:
    """Return the block whose mbarrier counts the bytes that the block `rank` gets."""
    if rank is None or not pair:
        return rank
    # It is the block of the target's pair whose parity the block of the given mbarrier has.
    parity = int(named_rank(barrier.astype(np.uint32))[0])
    if parity < 0:
        parity = int(group.block_index[0])
    return rank & ~1 | parity & 1


def _each(group: Group, values: Lanes) -> Lanes:
    return np.broadcast_to(values, (group.n,))


def _read_map(group: Group, lane: int, address: int) -> TensorMap:
    count = MAP_BYTES // UNIT
    part = each_unit(group, np.full(count, lane))
    at = np.uint64(address) + np.arange(0, MAP_BYTES, UNIT, dtype=np.uint64)
    words = load(part, LOCATORS[""](part, at, UNIT, "read"), 8, 2)
    tensor_map = TensorMap.unpack(np.stack(words, axis=1).tobytes())
    if tensor_map is None:
        reason = f"the bytes at {int(address):#x} are not a tensor map of this driver"
        raise Fault(ILLEGAL_INSTRUCTION, reason, lane=group.lane_at(lane))
    return tensor_map


class _Box:
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
            out = padded.reshape(-1)
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
