"""The kinds of instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._emulator.counting.flops import FLOATS

if TYPE_CHECKING:
    from culaunch._emulator.ptx.syntax import Instruction

_NAMES = {
    "memory": (
        "applypriority cp discard ld ldmatrix ldu prefetch prefetchu st stmatrix suld sust tex tld4"
    ),
    "atomic": "atom red sured",
    "matrix": "mma tcgen05 wgmma wmma",
    "control": "bra brkpt brx call exit pmevent ret setmaxnreg trap",
    "synchronization": (
        "activemask bar barrier clusterlaunchcontrol elect fence griddepcontrol match mbarrier "
        "membar nanosleep redux shfl vote"
    ),
    "move": "cvt cvta isspacep istypep mapa mov movmatrix prmt selp slct suq txq",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}


def kind_of(instruction: Instruction) -> str:
    """Return the kind of an instruction; it is the type for arithmetic and comparisons."""
    kind = _KINDS.get(instruction.name)
    return kind or ("integer" if FLOATS.isdisjoint(instruction.mods) else "float")
