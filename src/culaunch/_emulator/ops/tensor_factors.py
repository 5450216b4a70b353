"""The factors of tcgen05.mma: A, B, their scales, and the metadata of a sparse A."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.fault import ILLEGAL_INSTRUCTION, Fault
from culaunch._emulator.matrix.elements import WIDTHS
from culaunch._emulator.matrix.product import values_of
from culaunch._emulator.matrix.sparse import nonzero
from culaunch._emulator.matrix.tcgen05 import metadata_places, padded, zero_columns
from culaunch._emulator.ops.factors import negated, read_factor, tcgen05_descriptors
from culaunch._emulator.ops.sparse import require_meaning

if TYPE_CHECKING:
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.matrix.elements import Elements
    from culaunch._emulator.matrix.tcgen05 import Kind, Places, Product
    from culaunch._emulator.types import Lanes


class Factors:
    """Factors of products of one shape by some threads; `blocks` are the pair of each thread."""

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

    def left(self, given: Lanes, lanes: Lanes | None, *, shifted: bool) -> Elements:
        """Return A as it is stored: (threads, m, k); `lanes` has its rows in tensor memory."""
        kind, depth = self.fields.a or "", self.fields.depth
        if lanes is None:
            return self._factor(given, kind, np.arange(self.fields.m), depth, 0)
        # Shifted rows come from the lane before; the first one stays.
        lane, column = self.at(given, np.maximum(lanes - shifted, 0))
        columns = np.arange(8 * depth // self.kind.depth)
        lane, column = lane[:, :, None], column[:, None, None] + columns
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

    def codes(self, given: Lanes, stored: Elements) -> Lanes:
        """Return the metadata of a sparse A, given its elements: (threads, m, chunks)."""
        lanes, columns, shift = metadata_places(self.where.rows, self.kind)
        lane, start = self.at(given, lanes)
        column = start[:, None, None] + columns + (self.fields.selector or 0)
        block = self.block[:, :, None]
        self.memory.check(self.group, self.index, block, lane, column)
        codes: Lanes = self.memory.words[block, lane, column] >> shift.astype(np.uint32) & 15
        different = nonzero(stored, self.fields.a or "")
        require_meaning(self.group, self.index, codes, self.kind.chunk, different)
        return codes

    def right(self, given: Lanes, mask: int) -> Elements:
        """Return B: (threads, k, n); `mask` describes columns that are zero."""
        fields = self.fields
        depth = fields.depth if fields.selector is None else 2 * fields.depth
        rows = np.arange(fields.n) + (mask >> 56 & 63)
        bits: Elements = self._factor(given, fields.b or "", rows, depth, 1).swapaxes(1, 2)
        if mask:
            bits = np.where(zero_columns(mask, fields.m, fields.n), bits.dtype.type(0), bits)
        return bits

    def scales(self, given: list[Lanes], count: int) -> tuple[Lanes, Lanes]:
        """Return the scale of each element of A and of B, in the shapes of both."""
        fields, where = self.fields, self.where
        rows, columns = where.rows, np.arange(fields.n)
        depth = fields.depth if fields.selector is None else 2 * fields.depth
        count = count * 3 // 2 if depth == 96 else count
        # Row r is in lane r % 32 of word r / 32, once for the lanes of each warp. A scale behind
        # the last byte is in the next word of its row.
        parts = (
            (given[0], rows, rows // 32, 4, self.block, fields.scale_ids[0]),
            (given[1], columns % 32, columns // 32, -(-fields.n // 128) * 4,
             self.blocks[0][:, None], fields.scale_ids[1]),
        )  # fmt: skip
        out = []
        for address, lane, word, step, block, first in parts:
            byte = first + np.arange(count)
            at = (address.astype(np.int64) & 0xFFFF)[:, None, None] + word[:, None]
            at = at + byte // 4 * step
            place = block[:, :, None], lane[:, None], at
            self.memory.check(self.group, self.index, *place)
            bits = (self.memory.words[place] >> (byte % 4 * 8).astype(np.uint32)).astype(np.uint8)
            values = values_of("ue8m0", bits)
            if fields.scale_type == "ue4m3":
                both = np.stack([bits & 0x7F, bits * 0], axis=-1)
                values = values_of("ue4m3", both)[..., 0]
            out.append(np.repeat(values, depth // count, axis=-1))
        return out[0], out[1].swapaxes(1, 2)

    def at(self, given: Lanes, lane: Lanes) -> tuple[Lanes, Lanes]:
        """Return the lanes of places behind an address, and its column."""
        at = given.astype(np.int64)
        first = (at >> 16).reshape(-1, *(1,) * lane.ndim)
        return first + lane, at & 0xFFFF

    def _factor(self, words: Lanes, kind: str, rows: Lanes, depth: int, which: int) -> Elements:
        """Read A or B from the shared memory of the pair; each block has a share."""
        rows, width = rows[: rows.shape[0] // len(self.blocks)], WIDTHS[kind]
        at = tcgen05_descriptors(self.group, words)
        turned = self.fields.turned[which]
        if turned and width < 8:
            reason = "tcgen05.mma: a transposed matrix of elements below 8 bits"
            raise Fault(ILLEGAL_INSTRUCTION, reason, lane=self.group.lane_at(0))
        packed = self.kind.depth == 64
        size = max(width // 8, 1)
        parts = [
            read_factor(
                self.group, at, self.index, block, rows[None, :],
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
