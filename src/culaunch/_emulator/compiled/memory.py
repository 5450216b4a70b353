"""Loads, stores and atomics in C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.compiled.c_types import ABANDON
from culaunch._emulator.compiled.lane import Untraceable
from culaunch._emulator.compiled.textures import read_texture
from culaunch._emulator.memory.windows import SHARED, WINDOW_SHIFT
from culaunch._emulator.ops.atomics import OPERATIONS, atomic_update
from culaunch._emulator.ops.memory import check_hints, space_of
from culaunch._emulator.ptx.syntax import Address, Immediate, Register
from culaunch._emulator.types import size_of, unsigned

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.compiled.lane import Lane
    from culaunch._emulator.compiled.operands import LaneDecoder, LaneGroup
    from culaunch._emulator.ptx.syntax import Instruction, Operand

READS, WRITES, _UPDATES = 0, 1, 2


class Sites:
    """Count the accesses to global memory; each remembers the range that it was last in."""

    def __init__(self) -> None:
        self.count = 0

    def place(self, group: LaneGroup, space: str, address: Lane, size: int, how: int) -> str:
        """Return the C pointer to the bytes of an access, which exist from there on."""
        at = address.name
        site = f"&sites[{self.count}]"
        calls = {
            "": f"generic_at(c, t, {site}, {at}, {size}, {how})",
            "global": f"global_at(c, {site}, {at}, {size}, {how})",
            "const": f"global_at(c, {site}, {at}, {size}, {how})",
            "shared": f"shared_at(c, {at}, {size}, {how})",
            "local": f"local_at(c, t, {at}, {size})",
            "param": f"param_at(c, {at}, {size})",
        }
        if space in ("", "global", "const"):
            self.count += 1
        if space == "param" and how != READS:
            raise Untraceable("a store to a parameter")
        pointer = group.trace.let(calls[space], "u8 *")
        group.trace.do(f"if (__builtin_expect(!{pointer}, 0)) {ABANDON}")
        return pointer

    def span(self, space: str, where: str, how: int) -> str:
        """Return the C call that checks the accesses of a group, and points to the first."""
        if space == "shared":
            return f"shared_span(c, {where}, {how})"
        self.count += 1
        check = "global_span" if space else "generic_span"
        return f"{check}(c, &sites[{self.count - 1}], {where}, {how})"


def word_at(pointer: str, index: int, size: int) -> str:
    """Return a word of an access."""
    return f"((a{8 * size} *){pointer})[{index}]"


def _ld(decoder: LaneDecoder, instruction: Instruction, sites: Sites, group: LaneGroup) -> None:
    check_hints(instruction)
    kind = decoder.type(instruction)
    targets, place = decoder.vector(instruction.operands[0]), instruction.operands[1]
    if kind == "b128":
        raise Untraceable("a register of 128 bits")
    if _is_argument(place):
        group.trace.do(ABANDON)  # of a call, which is not compiled either
        return
    size, dtype = size_of(kind), unsigned(kind)
    puts = [decoder.write(target, kind) for target in targets]
    address = group.read_address(decoder.address(place))
    pointer = sites.place(group, space_of(instruction), address, size * len(puts), READS)
    for i, put in enumerate(puts):
        group.write(put, word_at(pointer, i, size), dtype)


def _st(decoder: LaneDecoder, instruction: Instruction, sites: Sites, group: LaneGroup) -> None:
    check_hints(instruction)
    kind = decoder.type(instruction)
    place, sources = instruction.operands[0], decoder.vector(instruction.operands[1])
    if kind == "b128":
        raise Untraceable("a register of 128 bits")
    if _is_argument(place):
        group.trace.do(ABANDON)  # of a call, which is not compiled either
        return
    size, dtype = size_of(kind), unsigned(kind)
    values = [group.read(decoder.read(source, kind), dtype) for source in sources]
    address = group.read_address(decoder.address(place))
    pointer = sites.place(group, space_of(instruction), address, size * len(values), WRITES)
    for i, value in enumerate(values):
        group.trace.do(f"{word_at(pointer, i, size)} = {value.name};")


def _atom(decoder: LaneDecoder, instruction: Instruction, sites: Sites, group: LaneGroup) -> None:
    check_hints(instruction, OPERATIONS)
    kind, space = decoder.type(instruction), space_of(instruction)
    name = next(word for word in instruction.mods if word in OPERATIONS)
    operands = list(instruction.operands)
    targets = decoder.vector(operands.pop(0)) if instruction.name == "atom" else ()
    wanted = 2 if name == "cas" else 1
    if kind == "b128" or len(operands) <= wanted or len(decoder.vector(operands[1])) > 1:
        raise Untraceable("this form of an atomic")
    size, dtype = size_of(kind), unsigned(kind)
    values = [group.read(decoder.read(v, kind), dtype) for v in operands[1 : 1 + wanted]]
    address = group.read_address(decoder.address(operands[0]))
    pointer = sites.place(group, space, address, size, _UPDATES)
    old = group.value(word_at(pointer, 0, size), dtype)
    new: Any = atomic_update(name, kind).function(_array(old), *map(_array, values))
    if kind == "f32" and name == "add" and space in ("", "global"):
        # The hardware flushes subnormals in f32 additions to global memory only.
        flushing = atomic_update(name, kind, ftz=True).function
        flushed = flushing(_array(old), *map(_array, values))
        is_global = _array(address) >> np.uint64(WINDOW_SHIFT) == 0
        new = flushed if space else np.where(is_global, flushed, new)
    group.trace.do(f"{word_at(pointer, 0, size)} = {new.view(dtype).name};")
    for target in targets:
        group.write(decoder.write(target, kind), old.name, dtype)


def _cp(decoder: LaneDecoder, instruction: Instruction, sites: Sites, group: LaneGroup) -> None:
    mods, operands = instruction.mods, instruction.operands
    if {"commit_group", "wait_group", "wait_all"} & set(mods):
        return  # copies happen at once
    whole = operands[2] if len(operands) > 2 else None
    if mods[0] != "async" or {"bulk", "mbarrier"} & set(mods) or not isinstance(whole, Immediate):
        raise Untraceable("this copy")
    size = whole.bits
    if size not in (4, 8, 16) or ("cg" in mods and size != 16):
        raise Untraceable(f"a copy of {size} bytes")
    target, source = (group.read_address(decoder.address(x)) for x in operands[:2])
    trace, rest = group.trace, operands[3] if len(operands) > 3 else None
    words = [f"w{trace.let('0', 'u8')}_{i}" for i in range(size // 4)]
    trace.do(f"u32 {', '.join(f'{word} = 0' for word in words)};")
    reads = "1"
    if isinstance(rest, Register) and rest.type == "pred":
        reads = f"!{group.read(decoder.read(rest, 'pred'), bool).name}"
    elif rest is not None and not (isinstance(rest, Register) and rest.type in ("b64", "u64")):
        amount = group.read(decoder.read(rest, "u32"), np.dtype("u4")).name
        # Copies of a part are rare: all or nothing are the edges of tiles.
        trace.do(f"if ({amount} && {amount} < {size}) {ABANDON}")
        reads = amount
    trace.do(f"if ({reads}) {{")
    pointer = sites.place(group, "global", source, size, READS)
    for i, word in enumerate(words):
        trace.do(f"{word} = {word_at(pointer, i, 4)};")
    trace.do("}")
    pointer = sites.place(group, "shared", target, size, WRITES)
    for i, word in enumerate(words):
        trace.do(f"{word_at(pointer, i, 4)} = {word};")


def _fence(decoder: LaneDecoder, instruction: Instruction, sites: Sites, group: LaneGroup) -> None:
    """Add no code: accesses happen at once and in order, and races are not checked here."""


def _is_argument(place: Operand) -> bool:
    base = place.base if isinstance(place, Address) else None
    return isinstance(base, Register) and base.type == "param"


def _array(lane: Lane) -> Any:
    """Return a lane as a stand-in for a NumPy array."""
    return lane


ACCESSES: dict[str, Callable[..., None]] = {
    "ld": _ld,
    "ldu": _ld,
    "st": _st,
    "atom": _atom,
    "red": _atom,
    "cp": _cp,
    "fence": _fence,
    "membar": _fence,
    "tex": read_texture,
}
assert SHARED >> WINDOW_SHIFT == 1  # the C code contains these numbers
