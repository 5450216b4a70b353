"""tcgen05.mma: one thread multiplies matrices of its block, or of a pair of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.fault import ILLEGAL_INSTRUCTION, Fault
from culaunch._emulator.matrix.product import multiply_add
from culaunch._emulator.matrix.sparse import expand
from culaunch._emulator.matrix.tcgen05 import KINDS, Product, places
from culaunch._emulator.ops.tensor_factors import Factors
from culaunch._emulator.ptx.syntax import Address, Immediate, Vector

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.matrix.elements import Elements
    from culaunch._emulator.matrix.tcgen05 import Places
    from culaunch._emulator.ptx.syntax import Instruction, Operand
    from culaunch._emulator.types import Lanes

# By the modifiers that say how many scales a row has.
_SCALES = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4, "block16": 4}


def multiply(decoder: Decoder, instruction: Instruction) -> Op:
    """Decode a product, which is complete at once."""
    mods, operands = instruction.mods, list(instruction.operands)
    name = next((word[6:] for word in mods if word.startswith("kind::")), "")
    if name not in KINDS:
        raise Unsupported
    kind = KINDS[name]
    form = _Form("ws" in mods, "cta_group::2" in mods, "sp" in mods, "ashift" in mods)
    count = next((_SCALES[word] for word in mods if word in _SCALES), kind.scales)
    d = decoder.address(operands[0])
    from_tensor = isinstance(operands[1], Address)
    a = decoder.address(operands[1]) if from_tensor else decoder.read(operands[1], "b64")
    metadata = decoder.address(operands.pop(3)) if form.sparse else None
    b, descriptor = decoder.read(operands[2], "b64"), decoder.read(operands[3], "b32")
    rest = operands[4:]
    scales = [decoder.address(rest.pop(0)) for _ in range(2)] if kind.scales else []
    off = [decoder.read(one, "b32") for one in _lanes_off(rest)]
    adds = decoder.read(rest.pop(0), "pred")
    power, zeros = 0, None
    if rest and form.ws:
        zeros = decoder.read(rest[0], "b64")
    elif rest:
        if not isinstance(rest[0], Immediate):
            raise Unsupported
        power = rest[0].bits

    def run(group: Group) -> None:
        words = np.broadcast_to(descriptor(group), (group.n,))
        block = np.broadcast_to(group.block_index, (group.n,))

        def each(values: Lanes, index: Lanes) -> Lanes:
            chosen: Lanes = np.broadcast_to(values, (group.n,))[index]
            return chosen

        masks = None if zeros is None else np.broadcast_to(zeros(group), (group.n,))
        # One product for each descriptor, of B's columns too.
        keys = np.stack([words.astype(np.uint64), words * np.uint64(0) if masks is None else masks])
        for key in np.unique(keys, axis=1).T:
            index = np.flatnonzero((keys == key[:, None]).all(axis=0))
            fields = Product.read(int(key[0]), kind)
            where = _places(group, fields, form)
            own = block[index]
            blocks = [own & ~1, own | 1] if form.pair else [own]
            one = Factors(group, index, blocks, kind, fields, where)
            y = one.right(each(b(group), index), int(key[1]))
            scaled = None
            if scales:
                scaled = one.scales([each(s(group), index) for s in scales], count)
            keeps = np.stack([each(o(group), index) for o in off], axis=1) if off else None
            # Lanes multiply their own rows of A. Where further lanes have further columns of D,
            # programs put A there again, or another matrix, as FlashMLA does.
            parts = where.parts() if from_tensor else [(slice(None), None)]
            for columns, lanes in parts:
                x = one.left(each(a(group), index), lanes, shifted=form.shifted)
                if metadata is not None:
                    x = expand(x, one.codes(each(metadata(group), index), x))
                part = None if scaled is None else (scaled[0], scaled[1][:, :, columns])
                to = where.of(columns)
                _add(one, each(d(group), index), to, x, y[:, :, columns],
                     each(adds(group), index), power, part, keeps)  # fmt: skip

    return run


class _Form(NamedTuple):
    """The modifiers of an instruction: weight-stationary, a pair of blocks, and those of A."""

    ws: bool
    pair: bool
    sparse: bool
    shifted: bool


def _lanes_off(rest: list[Operand]) -> tuple[Operand, ...]:
    if rest and isinstance(rest[0], Vector):
        vector = rest.pop(0)
        assert isinstance(vector, Vector)
        return vector.items
    return ()


def _places(group: Group, fields: Product, form: _Form) -> Places:
    where = places(fields.m, fields.n, pair=form.pair, ws=form.ws, sparse=form.sparse)
    wrong = ""
    if form.pair and group.chunk.launch.cluster.size % 2:
        wrong = "cta_group::2 in a cluster without pairs of blocks"
    elif not fields.a or not fields.b or not fields.d:
        wrong = "an instruction descriptor with a type that the kind does not have"
    elif where is None:
        wrong = f"an instruction descriptor with M of {fields.m} and N of {fields.n}"
    elif form.sparse != (fields.selector is not None):
        wrong = "the instruction and its descriptor do not agree on whether A is sparse"
    elif (fields.selector or 0) > 1:
        wrong = f"a sparsity selector of {fields.selector}"
    elif form.shifted and fields.m < 128:
        wrong = f"ashift with M of {fields.m}"
    elif form.sparse and fields.depth == 96:
        wrong = "a sparse product with K of 96"
    if wrong or where is None:
        reason = f"tcgen05.mma: {wrong}"
        raise Fault(ILLEGAL_INSTRUCTION, reason, lane=group.lane_at(0))
    return where


def _add(
    factors: Factors,
    given: Lanes,
    where: Places,
    x: Elements,
    y: Elements,
    adds: Lanes,
    power: int,
    scales: tuple[Lanes, Lanes] | None,
    off: Lanes | None,
) -> None:
    """Add the product to D, or write it there."""
    fields, memory = factors.fields, factors.memory
    lane, start = factors.at(given, where.lane)
    column, block = start[:, None, None] + where.column, factors.block[:, :, None]
    memory.check(factors.group, factors.index, block, lane, column)
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
    if factors.group.chunk.races is not None:
        now = factors.group.chunk.races.history.tick()
        memory.written[block, column] = now
