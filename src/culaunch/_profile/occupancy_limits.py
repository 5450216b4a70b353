"""How many blocks of a kernel fit a multiprocessor, what limits them, and what would add one."""

from __future__ import annotations

from dataclasses import dataclass

from culaunch._base.values import counted

_WARP = 32
# The granularity of allocations since compute capability 7.0 (NVIDIA's cuda_occupancy.h). A warp
# takes registers in such units, from one of the parts of a multiprocessor. A block takes shared
# memory in such units.
_REGISTER_UNIT, _PARTITIONS, _SHARED_UNIT = 256, 4, 128


@dataclass(frozen=True)
class Multiprocessor:
    """The resources of a multiprocessor: threads, blocks, registers and bytes of shared memory.

    ``reserved`` is the shared memory that the system takes from each block.
    """

    threads: int
    blocks: int
    registers: int
    shared: int
    reserved: int


@dataclass(frozen=True)
class BlockNeeds:
    """The resources of a block: threads, registers of a thread, shared memory in bytes."""

    threads: int
    registers: int
    shared: int


@dataclass(frozen=True)
class OccupancyLimits:
    """How many blocks each resource allows, and which change would allow one more."""

    blocks: int
    """Blocks of a multiprocessor, by the scarcest resource."""
    fraction: float
    """Their warps, as a fraction of those that a multiprocessor can run."""
    by: tuple[str, ...]
    """The resources that allow no more: ``"threads"``, ``"blocks"``, ``"registers"``, ``"shared
    memory"``."""
    hint: str
    """The resource that a block must use less of for one more to fit; empty if nothing would
    help."""


def limits_of(needs: BlockNeeds, has: Multiprocessor) -> OccupancyLimits:
    """Compute the resource that limits a kernel's blocks on a multiprocessor."""
    allowed = _allowed(needs, has)
    blocks = min(allowed.values())
    by = tuple(name for name, count in allowed.items() if count == blocks)
    warps = blocks * _warps(needs.threads)
    most = max(has.threads // _WARP, 1)
    return OccupancyLimits(blocks, min(warps / most, 1.0), by, _hint(needs, has, blocks, by))


def _allowed(needs: BlockNeeds, has: Multiprocessor) -> dict[str, int]:
    warps = _warps(needs.threads)
    allowed = {"threads": (has.threads // _WARP) // warps, "blocks": has.blocks}
    if needs.registers > 0:
        a_warp = _up(needs.registers * _WARP, _REGISTER_UNIT)
        fitting = has.registers // _PARTITIONS // a_warp * _PARTITIONS
        allowed["registers"] = fitting // warps
    used = _up(needs.shared + has.reserved, _SHARED_UNIT)
    if used > 0:
        allowed["shared memory"] = has.shared // used
    return allowed


def _hint(needs: BlockNeeds, has: Multiprocessor, blocks: int, by: tuple[str, ...]) -> str:
    """Return the smallest changes that together let one more block in."""
    wanted, warps, most = blocks + 1, _warps(needs.threads), has.threads // _WARP
    # All warps are in use, or as many blocks as there may be.
    if "blocks" in by or blocks * warps >= most:
        return ""
    changes = []
    if "registers" in by:
        most_of_warp = has.registers // _PARTITIONS // -(-wanted * warps // _PARTITIONS)
        registers = most_of_warp // _REGISTER_UNIT * _REGISTER_UNIT // _WARP
        if registers < 16:  # no kernel of any size has fewer
            return ""
        changes.append(_fewer(needs.registers - registers, "register", "s of a thread"))
    if "shared memory" in by:
        shared = has.shared // wanted // _SHARED_UNIT * _SHARED_UNIT - has.reserved
        if shared < 0:
            return ""
        changes.append(_fewer(needs.shared - shared, "byte", "s of shared memory"))
    if "threads" in by:
        threads = most // wanted * _WARP
        if threads * wanted <= blocks * warps * _WARP:  # smaller blocks, and no more warps
            return ""
        changes.append(_fewer(needs.threads - threads, "thread", "s of a block"))
    return f"{' and '.join(changes)}: {counted(wanted, 'block')}" if changes else ""


def _fewer(count: int, unit: str, rest: str) -> str:
    return f"{count:,} fewer {unit}{rest if count != 1 else rest.removeprefix('s')}"


def _warps(threads: int) -> int:
    return max(-(-threads // _WARP), 1)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
