"""How many floating-point operations an instruction is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._emulator.ptx.syntax import Instruction

_ITEMS = {"f16": 1, "bf16": 1, "f32": 1, "f64": 1, "f16x2": 2, "bf16x2": 2, "f32x2": 2}
FLOATS = frozenset((*_ITEMS, "tf32"))
_ONE = {
    "add", "cos", "div", "ex2", "lg2", "max", "min", "mul", "rcp", "rsqrt", "sin", "sqrt", "sub",
    "tanh",
}  # fmt: skip
_TWO = {"fma", "mad"}
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


def flops_of(instruction: Instruction) -> tuple[int, int]:
    """Return the operations of each thread, and those of each warp for matrix products.

    A fused multiply-add is two operations. Conversions and comparisons do not count.
    """
    name, mods = instruction.name, instruction.mods
    if name == "mma" or (name == "wmma" and "mma" in mods) or name == "wgmma":
        return 0, _product(name, mods)
    items = next((_ITEMS[word] for word in reversed(mods) if word in _ITEMS), 0)
    return items * ((name in _ONE) + 2 * (name in _TWO)), 0


def _product(name: str, mods: tuple[str, ...]) -> int:
    shape = next(filter(None, map(_SHAPE.fullmatch, mods)), None)
    if shape is None or "s32" in mods:
        return 0
    m, n, k = map(int, shape.groups())
    # Four warps compute a product of wgmma.
    return 2 * m * n * k // (4 if name == "wgmma" else 1)
