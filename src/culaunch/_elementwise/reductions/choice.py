"""The regimes of a group's kernels: threads that share a row, and blocks that do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._elementwise.reductions.regime import COLUMNS, Regime

if TYPE_CHECKING:
    from culaunch._elementwise.reductions.layout import Layout

Shapes = tuple[tuple[int, int], ...]

# The threads of a block that hold a row, and the packs of each, by preference. Several packs are
# loaded together. Few rows do not fill the device, so each thread has one. A poor choice takes up
# to 40 % more time (H200).
_FEW = ((1024, 1), (1024, 2), (1024, 4), (1024, 8))
_FULL = ((512, 2), (512, 4), (512, 8))
_FULL_ALONE = (*_FULL, (1024, 4), (1024, 8))  # without clusters
_HALF = ((256, 4), (512, 4), (1024, 4))
# Elements of several arrays in half precision become floats, which need many registers.
_HALF_SEVERAL = ((1024, 1),)
_ROOM = {256: 64, 512: 48, 1024: 32}  # registers of 4 bytes for the row, by the threads of a block
_BLOCK = 64  # threads, if teams of at most a warp share rows


class _Preferred(NamedTuple):
    """The shapes of many rows."""

    full: Shapes
    """Threads that hold a row, and the packs of each."""
    warp: Shapes = ()
    """Packs of a thread and threads of a block, for teams of at most a warp."""
    again: Shapes = ()
    """Threads that read a row again, and the packs of each, which must be exactly the row."""


# By the elements of a pack, and whether a row waits once for reductions, if elements of one array
# are written. A row that is read again needs fewer registers, and has policies for the caches.
_OF_ONE_ARRAY = {
    (4, False): _Preferred(_FULL, again=((512, 2),)),
    (4, True): _Preferred(_FULL, again=((256, 2), (512, 2), (512, 8))),
    (8, False): _Preferred(_HALF, warp=((2, 64),)),
    (8, True): _Preferred(
        ((512, 2), (512, 4), (1024, 4)), warp=((1, 128), (2, 64)), again=((512, 2),)
    ),
}
_WARP_SUMS = ((4, 64),)  # if no elements of rows are written
# Threads of a block and blocks of a cluster, for rows that no block can hold.
_CLUSTERS = ((512, 2), (512, 4), (512, 8), (1024, 8))
_BUSY = 4  # blocks per multiprocessor that keep its memory busy
_TEAM = 512  # threads, if rows are read again
# If rows are long, fewer blocks run at once, so the second pass finds the row in the L2 cache.
_WIDE_TEAM = 1024
_LONG = 16384  # registers of a row
_STACK = 8  # threads of a column
# The same for rows that are reduced along the other dimensions, too: of the row and of the results.
_ROOM_ACROSS = {512: 96, 1024: 48}
_ACROSS = ((512, 1), (512, 2), (1024, 2), (1024, 4))
_ACROSS_HALF = ((512, 1), (512, 2), (512, 4))
_ACROSS_MANY = ((512, 2), (512, 4), (512, 1))
_MANY = 16  # registers of a pack
_ACROSS_WARP = 64  # registers of the packs of a thread, if teams of at most a warp share rows
_THREADS_ACROSS = 512  # of a multiprocessor, if a row needs many registers
_REGISTERS = 65536  # of a multiprocessor
_OTHER = 40  # registers of a thread for everything else
_LEAST = 4  # rows of a team; fewer rows would give too many partial results


@dataclass(frozen=True)
class Sizes:
    """The numbers of a group's call."""

    rows: Any
    """The product of the sizes that are kept."""
    size: Any
    """Packs of a row, or its elements where rows are columns."""
    columns: Any = 1
    """How many of the rows lie beside each other."""


@dataclass(frozen=True)
class Choice:
    """A regime, and how a row is split among blocks."""

    regime: Regime
    # Blocks of a row, and the packs of each; None: one block has it all.
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
    writes_elements: bool,
    phases: int,
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
    writes_elements : bool
        Whether elements of rows are written, not only what rows are reduced to.
    phases : int
        How often a row waits for a reduction.
    """
    is_wide = bool(sizes.size * layout.vector >= 1 << 31)
    if layout.kind == "column":
        return _columns(layout, sizes, registers, multiprocessors, is_wide=is_wide)
    # Several arrays of a row and common ones need more registers than 1024 threads have.
    is_long = sizes.size * registers > _LONG and not (has_common and registers > 4)
    team = _WIDE_TEAM if is_long else _TEAM
    return _rows(
        layout, sizes, registers, multiprocessors, has_clusters, team,
        _preferred(
            layout.vector, registers, phases,
            has_common=has_common, writes_elements=writes_elements,
        ),
        is_wide=is_wide,
    )  # fmt: skip


def _preferred(
    vector: int, registers: int, phases: int, *, has_common: bool, writes_elements: bool
) -> _Preferred:
    is_half, is_one = vector == 8, registers <= 4
    if is_half and not is_one:
        return _Preferred(_HALF_SEVERAL)
    if is_one and phases and writes_elements and vector in (4, 8):
        found = _OF_ONE_ARRAY[vector, phases == 1]
        # Common values, such as weights, need registers, too. A softmax has none.
        return found if phases == 1 or has_common else found._replace(again=())
    warp = _WARP_SUMS if is_one and not writes_elements else ()
    if is_half and is_one and phases == 1:
        return _Preferred(_OF_ONE_ARRAY[vector, True].full, warp)
    return _Preferred(_HALF if is_half else _FULL, warp)


def _rows(
    layout: Layout,
    sizes: Sizes,
    registers: int,
    count: Any,
    has_clusters: Any,
    team_of_loop: int,
    preferred: _Preferred,
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

    def of_warp(held: int, packs: int, block: int) -> Choice:
        team = held // packs
        is_full = bool(size == held) and not is_wide
        return Choice(replace(regime(team, block // team, packs), is_full=is_full))

    size = sizes.size
    is_half = layout.vector == 8
    is_few = bool(sizes.rows < count)
    # Clusters were slower for half precision: 1.1 times forward, 1.8 times backward (H200).
    can_cluster = bool(not is_few and not is_half and has_clusters)
    shapes: Shapes = _FEW
    if not is_few:
        shapes = preferred.full if can_cluster or is_half else _FULL_ALONE
    for threads, packs in preferred.again if not is_few else ():
        if size == threads * packs:
            return Choice(replace(regime(threads, 1, packs, is_cached=False), is_full=True))
    for packs, block in preferred.warp if not is_few else ():
        held = _at_least(size, tuple(packs << n for n in range(6)))
        if held is not None:
            return of_warp(held, packs, block)
    fitting = [(n, packs) for n, packs in shapes if packs * registers <= _ROOM[n]]
    (threads, packs), *larger = fitting or [(256, 1)]
    held = _at_least(size, tuple(packs << n for n in range(threads.bit_length())))
    if held is not None and held <= 32 * packs:
        return of_warp(held, packs, _BLOCK)
    if held is not None:
        return Choice(regime(held // packs, 1, packs))
    for threads, packs in larger:
        if size <= threads * packs:
            return Choice(regime(threads, 1, packs))
    for threads, cluster in _CLUSTERS if can_cluster else ():
        most = min(_ROOM[threads] // max(registers, 1), 32 // layout.vector)
        each = [n for n in (1, 2, 4, 8) if n <= most]
        held = _at_least(size, tuple(threads * cluster * n for n in each))
        if held is not None:
            packs = held // (threads * cluster)
            return Choice(regime(threads, 1, packs, cluster=cluster))
    if not is_few:
        return Choice(regime(team_of_loop, 1, _packs_of_loop(registers), is_cached=False))
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
    shapes: Shapes = _ACROSS_MANY
    if registers <= _MANY:
        shapes = _ACROSS_HALF if layout.vector == 8 else _ACROSS
    of_warp = [n for n in (1, 2, 4) if n * registers <= _ACROSS_WARP] or [1]
    packs = min(of_warp[-1], 2) if registers > _MANY else of_warp[-1]
    team = _at_least(size, tuple(packs * n for n in (1, 2, 4, 8, 16, 32)))
    if team is not None:
        team, teams = team // packs, 256 * packs // team
    else:
        for threads, packs in shapes:
            held = _at_least(
                size, tuple(packs * n for n in (64, 128, 256, 512, 1024) if n <= threads)
            )
            if held is not None and packs * registers <= _ROOM_ACROSS[threads]:
                team, teams = held // packs, 1
                break
        else:
            return None
    threads = team * teams
    blocks = max(1, _REGISTERS // (threads * (packs * registers + _OTHER)))
    if packs * registers > 2 * _MANY:
        blocks = max(1, min(blocks, _THREADS_ACROSS // threads))
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


def _at_least(size: Any, choices: tuple[int, ...]) -> int | None:
    return next((one for one in choices if size <= one), None)
