"""wgmma: products of large matrices by four warps, out of shared memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.decode.instruction import decodes, every_lane
from culaunch._emulator.decode.undefined_bits import Flow
from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.machine.rows import from_rows, to_rows
from culaunch._emulator.matrix.elements import WIDTHS, unpack
from culaunch._emulator.matrix.fragments import a_places, gather
from culaunch._emulator.matrix.product import multiply_add
from culaunch._emulator.matrix.sparse import expand
from culaunch._emulator.matrix.wgmma import (
    Descriptors,
    accumulators,
    element_bytes,
    from_accumulators,
)
from culaunch._emulator.ops.factors import negated, read_factor
from culaunch._emulator.ops.matrix import ELEMENT_TYPES, require, shape_of
from culaunch._emulator.ops.sparse import sparsity
from culaunch._emulator.ptx.syntax import Immediate, Vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.decode.decoder import Decoder, Reader
    from culaunch._emulator.machine.state import Group, Op
    from culaunch._emulator.matrix.elements import Elements
    from culaunch._emulator.ptx.syntax import Instruction, Operand
    from culaunch._emulator.types import Lanes

# K of one instruction, in bits; and the shape of mma whose A has the same fragments.
_DEPTH_BITS = 256
_FRAGMENTS = {16: "m16n8k16", 32: "m16n8k8", 8: "m16n8k32", 1: "m16n8k256"}


def _results(instruction: Instruction) -> int:
    return 1 if instruction.mods[0] == "mma_async" else 0


def _updates(instruction: Instruction) -> bool:
    return instruction.mods[0] == "mma_async"


@decodes(
    "wgmma",
    results=_results,
    updates=_updates,
    effects=True,
    waits=False,
    undefined=Flow.COMPUTES,
    warp_mask=every_lane,
)
def _wgmma(decoder: Decoder, instruction: Instruction) -> Op:
    mods, operands = instruction.mods, list(instruction.operands)
    if mods[0] in ("fence", "commit_group", "wait_group"):
        return _commit_or_wait(instruction)
    if mods[0] != "mma_async":
        raise Unsupported
    d, a, b = [word for word in mods if word in ELEMENT_TYPES]
    match = re.fullmatch(r"m64n(\d+)k(\d+)", shape_of(mods))
    is_sparse = "sp" in mods
    if match is None or WIDTHS[a] * int(match[2]) != _DEPTH_BITS << is_sparse:
        raise Unsupported
    columns, depth = int(match[1]), int(match[2])
    read_codes = sparsity(decoder, instruction, 3, a, depth) if is_sparse else None
    if is_sparse:
        del operands[3:5]
    targets = decoder.vector(operands[0])
    kind = "b32"
    puts = [decoder.write(one, kind) for one in targets]
    olds = [decoder.read(one, kind) for one in targets]
    require(puts, columns * WIDTHS[d] // 64)
    adds = decoder.read(operands[3], "pred")
    signs, transposed = _options(operands, a)
    left = _factor(decoder, operands[1], a, depth >> is_sparse, transposed[0])
    right = _factor(decoder, operands[2], b, depth, transposed[1])

    def run(group: Group) -> None:
        if not group.whole_warps:
            reason = "not all lanes of the warps execute a wgmma"
            raise Fault(LAUNCH_FAILED, reason, lane=group.lane_at(0))
        # A warp's place in its warpgroup says which rows are its own.
        first = group.lanes[::32] % group.chunk.width // 32 % 4 * 16
        x = _negated(left(group, first[:, None] + np.arange(16)), a, signs[0])
        if read_codes is not None:
            x = expand(x, read_codes(group, x))
        y = _negated(right(group, np.arange(columns)[None, :]), b, signs[1]).swapaxes(1, 2)
        old = accumulators(d, [to_rows(group, read(group)) for read in olds])
        kept = to_rows(group, adds(group))[:, :1, None]
        result = multiply_add(
            (d, a, b, d),
            x,
            y,
            np.where(kept, old, old.dtype.type(0)),
            satfinite="satfinite" in mods,
        )
        for put, rows in zip(puts, from_accumulators(d, result), strict=True):
            put(group, from_rows(group, rows))

    return run


def _commit_or_wait(instruction: Instruction) -> Op:
    """Decode what needs no work: products are available at once, which the hardware allows."""
    kind, operands = instruction.mods[0], instruction.operands
    newest = operands[0].bits if operands and isinstance(operands[0], Immediate) else 0

    def run(group: Group) -> None:
        races = group.chunk.races
        if races is None:
            return
        if kind == "commit_group":
            races.products.commit(group.lanes)
        elif kind == "wait_group":
            races.wait_products(group.lanes, newest)

    return run


def _options(operands: list[Operand], kind: str) -> tuple[tuple[int, int], tuple[bool, bool]]:
    """Return the signs of A and B, and which of them are transposed."""
    numbers = []
    for operand in operands[4:]:
        if not isinstance(operand, Immediate):
            raise Unsupported
        numbers.append(operand.bits if operand.bits < 1 << 31 else operand.bits - (1 << 32))
    signs = (numbers[0], numbers[1]) if len(numbers) > 1 else (1, 1)
    rest = [bool(number) for number in numbers[2:]]
    # A in registers has no layout to transpose.
    if len(rest) == 1:
        rest = [False, *rest]
    turned = (rest[0], rest[1]) if len(rest) == 2 else (False, False)
    if any(turned) and WIDTHS[kind] != 16:
        raise Unsupported("a transposed matrix of elements that do not have 16 bits")
    return signs, turned


def _factor(
    decoder: Decoder, operand: Operand, kind: str, depth: int, transposed: bool
) -> Callable[[Group, Lanes], Elements]:
    """Return a function that reads rows of A, or columns of B, as bits: (warps, rows, depth)."""
    if isinstance(operand, Vector):
        readers = [decoder.read(one, "b32") for one in operand.items]
        require(readers, 4)
        places = a_places(_FRAGMENTS[WIDTHS[kind]], kind)
        return lambda group, _: gather(
            unpack(kind, [to_rows(group, read(group)) for read in readers]), places
        )
    descriptor = decoder.read(operand, "b64")
    return lambda group, rows: _from_memory(group, descriptor, kind, rows, depth, transposed)


def _from_memory(
    group: Group, descriptor: Reader, kind: str, rows: Lanes, depth: int, transposed: bool
) -> Elements:
    at = Descriptors.read(to_rows(group, descriptor(group))[:, 0])
    size = element_bytes(kind)
    count = depth * WIDTHS[kind] // 8 // size
    index = 32 * np.arange(at.start.shape[0])
    block = np.broadcast_to(group.block_index, (group.n,))[::32]
    # With a seed, warps of a warpgroup may run apart: another one may have waited for this product.
    warps = group.lanes[::32] % group.chunk.width // 32
    grouped = warps.shape[0] % 4 == 0 and bool((warps.reshape(-1, 4) % 4 == np.arange(4)).all())
    bits = read_factor(
        group, at, index, block, rows, count, size, transposed=transposed, grouped=grouped
    )
    if kind == "b1":
        return np.unpackbits(bits, axis=-1, bitorder="little")
    return bits


def _negated(bits: Elements, kind: str, sign: int) -> Elements:
    if sign == 1:
        return bits
    if sign != -1:
        raise Unsupported(f"a factor of {sign}")
    return negated(bits, kind)
