"""The regimes of a group's kernels: threads that share a row, and blocks that do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._elementwise.reductions.regime import COLUMNS, Regime

if TYPE_CHECKING:
    from culaunch._elementwise.reductions.layout import Layout

# Registers of 4 bytes that a thread may hold of a row, by the threads of a block.
_ROOM = ((32, 64), (128, 64), (256, 64), (512, 48), (1024, 32))
_BUSY = 4  # blocks of a multiprocessor that keep its memory busy
_WARPS = 32  # rows of a multiprocessor that give its schedulers work
_TEAM = 512  # threads, where rows are read again
_STACK = 8  # threads of a column


@dataclass(frozen=True)
class Sizes:
    """The numbers of a group's call.

    Attributes
    ----------
    rows : int
        Of all dimensions that are kept.
    size : int
        Packs of a row, or its elements where rows are columns.
    columns : int
        How many of the rows lie beside each other.
    """

    rows: Any
    size: Any
    columns: Any = 1


@dataclass(frozen=True)
class Choice:
    """A regime, and how a row is split among blocks.

    Attributes
    ----------
    splits, chunk : int
        Blocks of a row, and the packs of each; None: one block has it all.
    """

    regime: Regime
    splits: Any = None
    chunk: Any = None


def choose(layout: Layout, sizes: Sizes, registers: int, multiprocessors: Any) -> Choice:
    """Choose for the sizes of a call: each comparison is a guard.

    Parameters
    ----------
    layout : Layout
    sizes : Sizes
    registers : int
        Of 4 bytes, for one pack of each array.
    multiprocessors : int
    """
    is_wide = bool(sizes.size * layout.vector >= 1 << 31)
    pick = _columns if layout.kind == "column" else _rows
    return pick(layout, sizes, registers, multiprocessors, is_wide=is_wide)


def _rows(layout: Layout, sizes: Sizes, registers: int, count: Any, *, is_wide: bool) -> Choice:
    def regime(team: int, teams: int, packs: int, *, is_cached: bool = True) -> Regime:
        return Regime(
            "row", layout.vector, team, teams, packs, is_cached, is_wide, len(layout.kept),
            len(layout.reduced),
        )  # fmt: skip

    size = sizes.size
    if size <= 256 and sizes.rows >= count * _WARPS:
        # Many short rows: with several packs per thread, fewer values combine across threads.
        each = next((n for n in (4, 2) if n * registers <= 64), 1)
        team = _at_least(size, tuple(each * n for n in (1, 2, 4, 8, 16, 32)))
        if team is not None:
            return Choice(regime(team // each, 256 * each // team, each))
    team = _at_least(size, (1, 2, 4, 8, 16, 32))
    if team is not None:
        return Choice(regime(team, 256 // team, 1))
    is_few = bool(sizes.rows < count)
    for threads, room in _ROOM:
        if is_few and threads < 1024 and size > threads:
            continue
        # Many elements of a thread wait for each other: more threads then share a row.
        values = 64 if threads == 1024 else 32
        fitting = [n for n in (1, 2, 4, 8) if n * registers <= room and n * layout.vector <= values]
        packs = _at_least(size, tuple(threads * n for n in fitting))
        if packs is not None:
            return Choice(regime(threads, 4 if threads == 32 else 1, packs // threads))
    packs = max(1, min(4, 32 // max(registers, 1)))
    looped = regime(_TEAM, 1, packs, is_cached=False)
    if not is_few:
        return Choice(looped)
    wanted = -(-count * _BUSY // sizes.rows)
    return _split(looped, size, wanted, _TEAM * packs)


def _columns(layout: Layout, sizes: Sizes, registers: int, count: Any, *, is_wide: bool) -> Choice:
    def regime(packs: int, *, is_cached: bool) -> Regime:
        return Regime(
            "column", layout.vector, _STACK, COLUMNS, packs, is_cached, is_wide,
            len(layout.kept), len(layout.reduced),
        )  # fmt: skip

    size = sizes.size
    most = max(1, min(4, 32 // max(registers, 1)))
    packs = _at_least(size, tuple(_STACK * n for n in (1, 2, 4) if n <= most))
    if packs is not None:
        return Choice(regime(packs // _STACK, is_cached=True))
    looped = regime(most, is_cached=False)
    blocks = -(-sizes.columns // (COLUMNS * layout.vector)) * (sizes.rows // sizes.columns)
    if blocks >= count * 2 or size <= 256:
        return Choice(looped)
    wanted = -(-count * 2 * _BUSY // blocks)
    return _split(looped, size, wanted, _STACK * most * 2)


def _split(regime: Regime, size: Any, wanted: Any, step: int) -> Choice:
    """Share a row among blocks, whole steps of a loop for each."""
    steps = -(-size // step)
    # Every number here is a number of the call: a program serves all sizes.
    chunk = -(-steps // wanted) * step
    return Choice(regime, -(-size // chunk), chunk)


def _at_least(size: Any, choices: tuple[int, ...]) -> int | None:
    return next((one for one in choices if size <= one), None)
