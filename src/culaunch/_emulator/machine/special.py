"""Special registers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from culaunch._emulator.memory.bytes import take

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.machine.chunk import Chunk
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.types import Lanes

_AXES = "xyz"


def special_register(name: str) -> tuple[str, Callable[[Group], Lanes]] | None:
    """Return the type of the special register `name` and a function that reads it."""
    if name in _CLOCKS:
        kind, read = _CLOCKS[name]
        return kind, lambda _: read()
    if name in ("envreg1", "envreg2"):
        # Where cooperative groups finds the workspace of a grid barrier, high word first.
        shift = 32 if name == "envreg1" else 0

        def workspace(group: Group) -> Lanes:
            launch = group.chunk.launch
            # If the launch is not cooperative, the kernel gets a null pointer here, and then uses
            # it. Record the query, so the report can name the missing option.
            launch.lacks_workspace |= not launch.grid_workspace
            return np.array([launch.grid_workspace >> shift & 0xFFFFFFFF], np.uint32)

        return "u32", workspace
    if name.startswith(("envreg", "pm")):
        return "u32", lambda _: np.zeros(1, np.uint32)
    compute = _PER_LANE.get(name)
    if compute is None:
        return None

    def get(group: Group) -> Lanes:
        chunk = group.chunk
        # Computed for every lane at the first read, and then reused: kernels read the same few
        # registers wherever they use the thread's index.
        values = chunk.special.get(name)
        if values is None:
            values = chunk.special[name] = _compact(compute(chunk))
        return take(values, None if group.full else group.lanes)

    return ("u64" if name in ("gridid", "current_graph_exec") else "u32"), get


def _compact(values: Lanes) -> Lanes:
    """Keep a value that is the same for all lanes once."""
    # ctaid of a chunk of one block, or tid.y of a flat block: a uniform value keeps everything
    # uniform that depends only on it. The copy frees the array for all lanes.
    return values[:1].copy() if (values == values[0]).all() else values


def _thread(chunk: Chunk) -> Lanes:
    return np.tile(np.arange(chunk.width), chunk.blocks)


def _tid(axis: int) -> Callable[[Chunk], Lanes]:
    def compute(chunk: Chunk) -> Lanes:
        shape = chunk.launch.block
        # The padding past the last thread of a block gets indices as well, beyond the block's:
        # nobody sees them, since those lanes are never alive.
        step = int(np.prod(shape[:axis], dtype=np.int64))
        values = _thread(chunk) // step
        return (values % shape[axis] if axis < 2 else values).astype(np.uint32)

    return compute


def _ctaid(axis: int) -> Callable[[Chunk], Lanes]:
    def compute(chunk: Chunk) -> Lanes:
        values = chunk.launch.cluster.block_of(_blocks(chunk), chunk.launch.grid)[axis]
        return np.repeat(values, chunk.width).astype(np.uint32)

    return compute


def _clusterid(axis: int) -> Callable[[Chunk], Lanes]:
    def compute(chunk: Chunk) -> Lanes:
        values = chunk.launch.cluster.cluster_of(_blocks(chunk), chunk.launch.grid)[axis]
        return np.repeat(values, chunk.width).astype(np.uint32)

    return compute


def _cluster_ctaid(axis: int) -> Callable[[Chunk], Lanes]:
    def compute(chunk: Chunk) -> Lanes:
        values = chunk.launch.cluster.rank_of(_blocks(chunk))[axis]
        return np.repeat(values, chunk.width).astype(np.uint32)

    return compute


def _cluster_ctarank(chunk: Chunk) -> Lanes:
    ranks = _blocks(chunk) % chunk.launch.cluster.size
    return np.repeat(ranks, chunk.width).astype(np.uint32)


def _nclusterid(axis: int) -> Callable[[Chunk], Lanes]:
    def compute(chunk: Chunk) -> Lanes:
        return np.full(1, chunk.launch.cluster.extent(chunk.launch.grid)[axis], np.uint32)

    return compute


def _blocks(chunk: Chunk) -> Lanes:
    return chunk.launch.block_numbers(chunk.first_block, chunk.blocks)


def _extent(shape: str, axis: int) -> Callable[[Chunk], Lanes]:
    return lambda chunk: np.full(1, getattr(chunk.launch, shape)[axis], np.uint32)


def _constant(value: int) -> Callable[[Chunk], Lanes]:
    return lambda _: np.full(1, value, np.uint32)


def _lane_mask(compute: Callable[[Lanes], Lanes]) -> Callable[[Chunk], Lanes]:
    def masks(chunk: Chunk) -> Lanes:
        lane = np.arange(chunk.size, dtype=np.uint64) % np.uint64(32)
        return compute(lane).astype(np.uint32)

    return masks


_ONE = np.uint64(1)
_PER_LANE: dict[str, Callable[[Chunk], Lanes]] = {
    **{f"tid.{axis}": _tid(i) for i, axis in enumerate(_AXES)},
    **{f"ctaid.{axis}": _ctaid(i) for i, axis in enumerate(_AXES)},
    **{f"clusterid.{axis}": _clusterid(i) for i, axis in enumerate(_AXES)},
    **{f"nclusterid.{axis}": _nclusterid(i) for i, axis in enumerate(_AXES)},
    **{f"cluster_ctaid.{axis}": _cluster_ctaid(i) for i, axis in enumerate(_AXES)},
    **{f"cluster_nctaid.{axis}": _extent("cluster", i) for i, axis in enumerate(_AXES)},
    "cluster_ctarank": _cluster_ctarank,
    "cluster_nctarank": lambda chunk: np.full(1, chunk.launch.cluster.size, np.uint32),
    "is_explicit_cluster": lambda chunk: np.full(1, chunk.launch.cluster.size > 1, np.uint32),
    "laneid": lambda chunk: (_thread(chunk) % 32).astype(np.uint32),
    "warpid": lambda chunk: (_thread(chunk) // 32).astype(np.uint32),
    # An A100 has this many warps and multiprocessors, and kernels divide their work by them.
    "nwarpid": _constant(64),
    "smid": lambda chunk: np.repeat(
        (np.arange(chunk.blocks) + chunk.first_block) % 108, chunk.width
    ).astype(np.uint32),
    "nsmid": _constant(108),
    "gridid": lambda chunk: np.full(1, chunk.launch.number, np.uint64),
    "lanemask_eq": _lane_mask(lambda lane: _ONE << lane),
    "lanemask_lt": _lane_mask(lambda lane: (_ONE << lane) - _ONE),
    "lanemask_le": _lane_mask(lambda lane: (_ONE << (lane + _ONE)) - _ONE),
    "lanemask_gt": _lane_mask(lambda lane: ~((_ONE << (lane + _ONE)) - _ONE)),
    "lanemask_ge": _lane_mask(lambda lane: ~((_ONE << lane) - _ONE)),
    "dynamic_smem_size": lambda chunk: np.full(1, chunk.launch.dynamic_shared, np.uint32),
    "total_smem_size": lambda chunk: np.full(1, chunk.launch.shared_bytes, np.uint32),
    "aggr_smem_size": lambda chunk: np.full(1, chunk.launch.shared_bytes, np.uint32),
    "reserved_smem_offset_begin": _constant(0),
    "reserved_smem_offset_end": _constant(0),
    "reserved_smem_offset_cap": _constant(0),
}
for _i, _axis in enumerate(_AXES):
    _PER_LANE[f"ntid.{_axis}"] = _extent("block", _i)
    _PER_LANE[f"nctaid.{_axis}"] = _extent("grid", _i)
_PER_LANE["nclusterid.w"] = _PER_LANE["ctaid.w"] = _PER_LANE["tid.w"] = _constant(0)


def _clock(kind: str, shift: int, unit: Callable[[], int]) -> tuple[str, Callable[[], Lanes]]:
    dtype = np.uint64 if kind == "u64" else np.uint32
    mask = (1 << 64) - 1 if kind == "u64" else (1 << 32) - 1
    return kind, lambda: np.array([(unit() >> shift) & mask], dtype)


# One clock tick is a nanosecond: a kernel that measures time sees it pass.
_CLOCKS = {
    "clock": _clock("u32", 0, time.perf_counter_ns),
    "clock_hi": _clock("u32", 32, time.perf_counter_ns),
    "clock64": _clock("u64", 0, time.perf_counter_ns),
    "globaltimer": _clock("u64", 0, time.time_ns),
    "globaltimer_lo": _clock("u32", 0, time.time_ns),
    "globaltimer_hi": _clock("u32", 32, time.time_ns),
}
