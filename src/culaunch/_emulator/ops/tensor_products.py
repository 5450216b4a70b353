"""tcgen05.mma: one thread multiplies matrices of its block, or of a pair of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.fault import ILLEGAL_INSTRUCTION, NOT_SUPPORTED, Fault
from culaunch._emulator.matrix.elements import WIDTHS
from culaunch._emulator.matrix.product import multiply_add, values_of
from culaunch._emulator.matrix.tcgen05 import KINDS, Product, padded, places
from culaunch._emulator.ops.factors import negated, read_factor, tcgen05_descriptors
from culaunch._emulator.ptx.syntax import Address, Immediate, Vector

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.matrix.elements import Elements
    from culaunch._emulator.matrix.tcgen05 import Kind, Places
    from culaunch._emulator.ptx.syntax import Instruction, Operand
    from culaunch._emulator.types import Lanes

__all__ = ["multiply"]

# By the modifiers that say how many scales a row has.
_SCALES = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}


def multiply(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode a product, which is complete at once."""
    mods, operands = instruction.mods, list(instruction.operands)
    name = next((word[6:] for word in mods if word.startswith("kind::")), "")
    if name not in KINDS or any(word in ("sp", "ashift") for word in mods):
        raise Unsupported
    kind = KINDS[name]
    ws, pair = "ws" in mods, "cta_group::2" in mods
    count = next((_SCALES[word] for word in mods if word in _SCALES), kind.scales)
    d = decoder.address(operands[0])
    from_tensor = isinstance(operands[1], Address)
    a = decoder.address(operands[1]) if from_tensor else decoder.read(operands[1], "b64")
    b, descriptor = decoder.read(operands[2], "b64"), decoder.read(operands[3], "b32")
    rest = operands[4:]
    scales = [decoder.address(rest.pop(0)) for _ in range(2)] if kind.scales else []
    off = [decoder.read(one, "b32") for one in _lanes_off(rest)]
    adds = decoder.read(rest.pop(0), "pred")
    power = 0
    if rest:
        if not isinstance(rest[0], Immediate):
            raise Unsupported("a mask of zero columns")
        power = rest[0].bits

    def run(group: Group) -> None:
        words = np.broadcast_to(descriptor(group), (group.n,))
        block = np.broadcast_to(group.block_index, (group.n,))

        def each(values: Lanes, index: Lanes) -> Lanes:
            chosen: Lanes = np.broadcast_to(values, (group.n,))[index]
            return chosen

        for word in np.unique(words):
            index = np.flatnonzero(words == word)
            fields = Product.read(int(word), kind)
            where = _places(group, fields, pair=pair, ws=ws)
            own = block[index]
            blocks = [own & ~1, own | 1] if pair else [own]
            one = _Product(group, index, blocks, kind, fields, where)
            x = one.left(each(a(group), index), from_tensor=from_tensor)
            y = one.right(each(b(group), index))
            factors = None
            if scales:
                factors = one.scales([each(s(group), index) for s in scales], count)
            keeps = np.stack([each(o(group), index) for o in off], axis=1) if off else None
            one.add(each(d(group), index), x, y, each(adds(group), index), power, factors, keeps)

    return run


def _lanes_off(rest: list[Operand]) -> tuple[Operand, ...]:
    if rest and isinstance(rest[0], Vector):
        vector = rest.pop(0)
        assert isinstance(vector, Vector)
        return vector.items
    return ()


def _places(group: Group, fields: Product, *, pair: bool, ws: bool) -> Places:
    where = places(fields.m, fields.n, pair=pair, ws=ws)
    refused, wrong = fields.refused, ""
    if pair and group.chunk.launch.cluster.size % 2:
        wrong = "cta_group::2 in a cluster without pairs of blocks"
    elif not fields.a or not fields.b or not fields.d:
        wrong = "an instruction descriptor with a type that the kind does not have"
    elif where is None:
        wrong = f"an instruction descriptor with M of {fields.m} and N of {fields.n}"
    if refused or wrong or where is None:
        code = ILLEGAL_INSTRUCTION if wrong else NOT_SUPPORTED
        raise Fault(code, f"tcgen05.mma: {wrong or refused}", lane=group.lane_at(0))
    return where


class _Product:
    """Products of one shape by some threads of a group; `blocks` are the pair of each thread."""

    def __init__(
        self,
        group: Group,
        index: Lanes,
        blocks: list[Lanes],
        kind: Kind,
        fields: Product,
        where: Places,
    ) -> None:
        self.group, self.index, self.blocks = group, index, blocks
        self.kind, self.fields, self.where = kind, fields, where
        self.memory = group.chunk.tensor_memory
        # The block of each row and column of D: (threads, rows, columns).
        self.block = np.stack(blocks, axis=1)[:, where.block[:, :1]][:, :, 0]

    def left(self, given: Lanes, *, from_tensor: bool) -> Elements:
        """Return A: (threads, m, k)."""
        kind = self.fields.a or ""
        if not from_tensor:
            return self._factor(given, kind, self.fields.m, 0)
        lane, column = self._at(given, self.where.rows)
        lane, column = lane[:, :, None], column[:, None, None] + np.arange(8)
        block = self.block[:, :, None]
        self.memory.check(self.group, self.index, block, lane, column)
        words = np.ascontiguousarray(self.memory.words[block, lane, column])
        size = max(WIDTHS[kind] // 8, 1)
        bits: Elements = words.view(f"u{size}")
        if self.kind.depth == 64:
            bits = np.stack([bits & 15, bits >> 4], axis=-1).reshape(*bits.shape[:-1], -1)
        elif WIDTHS[kind] == 4:
            # A container of 8 bits has four bits in its middle, and six at its lower end.
            bits = np.bitwise_and(bits >> 2, 15)
        return self._signed(bits, kind, 0)

    def right(self, given: Lanes) -> Elements:
        """Return B: (threads, k, n)."""
        bits: Elements = self._factor(given, self.fields.b or "", self.fields.n, 1).swapaxes(1, 2)
        return bits

    def scales(self, given: list[Lanes], count: int) -> tuple[Lanes, Lanes]:
        """Return the scale of each element of A and of B, in the shapes of both."""
        fields, where = self.fields, self.where
        rows, columns = where.rows, np.arange(fields.n)
        # Row r is in lane r % 32 of word r / 32, once for the lanes of each warp.
        parts = (
            (given[0], rows, rows // 32, self.block, fields.scale_ids[0]),
            (given[1], columns % 32, columns // 32, self.blocks[0][:, None], fields.scale_ids[1]),
        )
        out = []
        for address, lane, word, block, first in parts:
            at = (address.astype(np.int64) & 0xFFFF)[:, None] + word
            self.memory.check(self.group, self.index, block, lane[None], at)
            words = np.ascontiguousarray(self.memory.words[block, lane[None], at])
            octets = words.view(np.uint8).reshape(*words.shape, 4)
            bits = np.ascontiguousarray(octets[..., first : first + count])
            values = values_of("ue8m0", bits)
            if fields.scale_type == "ue4m3":
                both = np.stack([bits & 0x7F, bits * 0], axis=-1)
                values = values_of("ue4m3", both)[..., 0]
            out.append(np.repeat(values, self.kind.depth // count, axis=-1))
        return out[0], out[1].swapaxes(1, 2)

    def add(
        self,
        given: Lanes,
        x: Elements,
        y: Elements,
        adds: Lanes,
        power: int,
        scales: tuple[Lanes, Lanes] | None,
        off: Lanes | None,
    ) -> None:
        """Add the product to D, or write it there."""
        fields, where, memory = self.fields, self.where, self.memory
        lane, start = self._at(given, where.lane)
        column, block = start[:, None, None] + where.column, self.block[:, :, None]
        memory.check(self.group, self.index, block, lane, column)
        words = memory.words[block, lane, column]
        d = fields.d or ""
        # An f16 is in the lower half of its word.
        old = words.astype(np.uint16) if d == "f16" else words
        if power:
            size = "f2" if d == "f16" else "f4"
            old = (old.view(size) * np.float32(2.0**-power)).astype(size).view(old.dtype)
        old = np.where(adds[:, None, None], old, old.dtype.type(0))
        types = (d, fields.a or "", fields.b or "", d)
        new = multiply_add(types, x, y, old, satfinite=fields.satfinite, scales=scales)
        new = new.astype(np.uint32)
        if off is not None:
            # A bit for each lane of each block of the pair.
            bit = where.block * 128 + lane
            word = off[np.arange(off.shape[0])[:, None, None], bit // 32]
            new = np.where(word >> (bit % 32).astype(np.uint32) & 1, words, new)
        memory.words[block, lane, column] = new
        if self.group.chunk.races is not None:
            now = self.group.chunk.races.history.tick()
            memory.written[block, column] = now

    def _at(self, given: Lanes, lane: Lanes) -> tuple[Lanes, Lanes]:
        """Return the lanes of places behind an address, and its column."""
        at = given.astype(np.int64)
        first = (at >> 16).reshape(-1, *(1,) * lane.ndim)
        return first + lane, at & 0xFFFF

    def _factor(self, words: Lanes, kind: str, rows: int, which: int) -> Elements:
        """Read A or B from the shared memory of the pair; each block has a share."""
        share, width = rows // len(self.blocks), WIDTHS[kind]
        at, depth = tcgen05_descriptors(self.group, words), self.kind.depth
        turned = self.fields.turned[which]
        if turned and width < 8:
            reason = "tcgen05.mma: a transposed matrix of elements below 8 bits"
            raise Fault(ILLEGAL_INSTRUCTION, reason, lane=self.group.lane_at(0))
        packed = depth == 64
        size = max(width // 8, 1)
        parts = [
            read_factor(
                self.group, at, self.index, block, np.arange(share)[None, :],
                depth // 2 if packed else depth, size, transposed=turned, reader="tcgen05.mma",
            )
            for block in self.blocks
        ]  # fmt: skip
        bits = np.concatenate(parts, axis=1)
        if packed:
            bits = np.stack([bits & 15, bits >> 4], axis=-1).reshape(*bits.shape[:-1], -1)
        elif width < 8:
            bits = padded(bits, width)
        return self._signed(bits, kind, which)

    def _signed(self, bits: Elements, kind: str, which: int) -> Elements:
        if self.fields.signs[which]:
            bits = negated(bits, kind)
        return bits
