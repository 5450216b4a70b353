"""The regimes of a group's kernels: threads that share a row, and blocks that do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._elementwise.reductions.regime import COLUMNS, Regime

if TYPE_CHECKING:
    from culaunch._elementwise.reductions.layout import Layout

# The registers of 4 bytes that a thread may hold of a row, by the number of threads in a block.
_ROOM = ((1024, 32), (512, 48), (256, 255))
_PACKS = (1, 2, 4, 8)  # of a thread
# Threads of a block and blocks of a cluster, for rows that no block can hold.
_CLUSTERS = ((512, 2), (512, 4), (512, 8), (1024, 8))
_BUSY = 4  # blocks per multiprocessor that keep its memory busy
_BLOCK = 128  # threads, if teams of at most a warp share rows: larger blocks take 3 % more (H200)
_TEAM = 512  # threads, if rows are read again
# A multiprocessor then works on one row at a time, so the second pass finds it in the L2 cache.
# Arrays common to all rows need more registers than so many threads have.
_WIDE_TEAM = 1024
_STACK = 8  # threads of a column
# The same for rows that are reduced along the other dimensions, too: of the row and of the results.
_ROOM_ACROSS = 64
_TEAMS_ACROSS = (64, 128, 256, 512)
_MANY = 16  # registers of a pack; above this, more threads with one pack each hide more latency
_REGISTERS = 65536  # of a multiprocessor
_OTHER = 40  # registers of a thread for everything else
_LEAST = 4  # rows of a team; fewer rows would give too many partial results


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


def choose(
    layout: Layout,
    sizes: Sizes,
    registers: int,
    multiprocessors: Any,
    has_clusters: Any,
    *,
    has_common: bool,
) -> Choice:
    """Choose for the sizes of a call: each comparison is a guard.

    Parameters
    ----------
    layout : Layout
    sizes : Sizes
    registers : int
        Of 4 bytes, for one pack of each array.
    multiprocessors : int
    has_clusters : int
        Whether the device can launch clusters.
    has_common : bool
        Whether an array has the same elements for all rows.
    """
    is_wide = bool(sizes.size * layout.vector >= 1 << 31)
    if layout.kind == "column":
        return _columns(layout, sizes, registers, multiprocessors, is_wide=is_wide)
    team = _TEAM if has_common else _WIDE_TEAM
    return _rows(layout, sizes, registers, multiprocessors, has_clusters, team, is_wide=is_wide)


def _rows(
    layout: Layout,
    sizes: Sizes,
    registers: int,
    count: Any,
    has_clusters: Any,
    wide_team: int,
    *,
    is_wide: bool,
) -> Choice:
    def regime(
        team: int, teams: int, packs: int, *, is_cached: bool = True, cluster: int = 1
    ) -> Regime:
        return Regime(
            "row", layout.vector, team, teams, packs, is_cached, is_wide, len(layout.kept),
            len(layout.reduced), cluster=cluster,
        )  # fmt: skip

    size = sizes.size
    # Clusters were slower for half precision: 1.1 times forward, 1.8 times backward (H200).
    may_cluster = layout.vector < 8
    # With several arrays in half precision, use more threads, because their elements become floats.
    is_narrow = layout.vector == 8 and registers > 4
    is_few = bool(sizes.rows < count)
    # A thread's elements wait for each other, so more threads share a row.
    values = 16 if is_narrow else 32

    def packs_of(threads: int, room: int, values: int) -> int | None:
        """Return how many packs each thread has, if so many threads can hold a row."""
        fitting = [n for n in _PACKS if n * registers <= room and n * layout.vector <= values]
        most = _at_least(size, tuple(threads * n for n in fitting))
        return None if most is None else most // threads

    # Two packs of a thread are loaded together. Fewer or more take 1 to 4 % more time (H200). Few
    # rows do not fill the device, so each thread has one.
    packs = 1 if is_few or registers > _ROOM[1][1] // 2 else 2
    widest = next(n for n, room in _ROOM[not is_few :] if packs * registers <= room)
    held = _at_least(size, tuple(packs * n for n in _powers(widest)))
    if held is not None:
        team = held // packs
        return Choice(regime(team, max(1, _BLOCK // team) if team <= 32 else 1, packs))
    can_cluster = bool(not is_few and may_cluster and has_clusters)
    for threads, room in _ROOM[1::-1]:
        if threads < widest or (threads == 1024 and can_cluster):
            # Such a block fills a multiprocessor, so nothing else runs while it waits.
            continue
        packs = packs_of(threads, room, 64 if threads == 1024 else values)
        if packs is not None:
            return Choice(regime(threads, 1, packs))
    if can_cluster:
        rooms = dict(_ROOM)
        for threads, cluster in _CLUSTERS:
            packs = packs_of(threads * cluster, rooms[threads], values)
            if packs is not None:
                return Choice(regime(threads, 1, packs, cluster=cluster))
    if not is_few:
        return Choice(regime(wide_team, 1, _packs_of_loop(registers), is_cached=False))
    packs = _packs_of_part(layout.vector, registers)
    wanted = -(-count * _BUSY // sizes.rows)
    return _split(regime(_TEAM, 1, packs, is_cached=False), size, wanted, _TEAM * packs)


def choose_across(
    layout: Layout, sizes: Sizes, registers: int, multiprocessors: Any
) -> Choice | None:
    """Choose for rows that are reduced along the other dimensions, too; None: it is not worth it.

    Parameters
    ----------
    registers : int
        Of 4 bytes, for one pack of each array and its partial results.
    """
    size = sizes.size
    if size * layout.vector >= 1 << 31:
        return None
    choices = (1,) if registers > _MANY else (1, 2, 4)
    each = max(n for n in choices if n == 1 or n * registers <= _ROOM_ACROSS)
    team = _at_least(size, tuple(each * n for n in (1, 2, 4, 8, 16, 32)))
    if team is not None:
        team, teams, packs = team // each, 256 * each // team, each
    else:
        # Many threads with few packs hide latency, but 1024 would wait at barriers together.
        for packs in (1, 2, 4):
            most = _at_least(size, tuple(threads * packs for threads in _TEAMS_ACROSS))
            if most is not None and packs * registers <= _ROOM_ACROSS:
                team, teams = most // packs, 1
                break
        else:
            return None
    threads = team * teams
    blocks = max(1, _REGISTERS // (threads * (packs * registers + _OTHER)))
    if sizes.rows < multiprocessors * (blocks * teams * _LEAST):
        return None
    return Choice(
        Regime(
            "row", layout.vector, team, teams, packs, True, False, len(layout.kept),
            len(layout.reduced), blocks=blocks,
        ),
        splits=multiprocessors * blocks,
    )  # fmt: skip


def combining(layout: Layout) -> Regime:
    """Return the regime of a kernel that combines the blocks' results."""
    kept, reduced = len(layout.kept), len(layout.reduced)
    return Regime("column", 1, COLUMNS, COLUMNS, 1, False, False, kept, reduced, step=1)


def _columns(layout: Layout, sizes: Sizes, registers: int, count: Any, *, is_wide: bool) -> Choice:
    def regime(packs: int, *, is_cached: bool) -> Regime:
        return Regime(
            "column", layout.vector, _STACK, COLUMNS, packs, is_cached, is_wide,
            len(layout.kept), len(layout.reduced),
        )  # fmt: skip

    size = sizes.size
    most = _packs_of_loop(registers)
    packs = _at_least(size, tuple(_STACK * n for n in (1, 2, 4) if n <= most))
    if packs is not None:
        return Choice(regime(packs // _STACK, is_cached=True))
    blocks = -(-sizes.columns // (COLUMNS * layout.vector)) * (sizes.rows // sizes.columns)
    if blocks >= count * 2 or size <= 256:
        return Choice(regime(most, is_cached=False))
    part = _packs_of_part(layout.vector, registers)
    wanted = -(-count * 2 * _BUSY // blocks)
    return _split(regime(part, is_cached=False), size, wanted, _STACK * part * 2)


def _packs_of_loop(registers: int) -> int:
    """Return how many packs a thread loads at once, if a row is longer."""
    return max(1, min(4, 32 // max(registers, 1)))


def _packs_of_part(vector: int, registers: int) -> int:
    """Return the same for a part of a row: all blocks should run at once.

    They do with up to 32 registers per thread, and a thread has a partial result for each element
    of a pack.
    """
    return max(1, min(4, (32 if vector < 8 else 8) // max(registers, 1)))


def _split(regime: Regime, size: Any, wanted: Any, step: int) -> Choice:
    """Split a row among blocks, in whole steps of the loop."""
    steps = -(-size // step)
    # All numbers here are numbers of the call, so one program serves all sizes.
    chunk = -(-steps // wanted) * step
    return Choice(regime, -(-size // chunk), chunk)


def _powers(most: int) -> tuple[int, ...]:
    return tuple(1 << n for n in range(most.bit_length()))


def _at_least(size: Any, choices: tuple[int, ...]) -> int | None:
    return next((one for one in choices if size <= one), None)
