"""Copies and fills that kernels start: they run after the grid, in the order of its launches.

A kernel names memory of the device only, and no structure of an array.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culaunch._emulator.fault import LAUNCH_FAILED, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.types import Lanes

TAIL_LAUNCH = 3  # cudaStreamTailLaunch
_KINDS = (3, 4)  # cudaMemcpyDeviceToDevice, cudaMemcpyDefault


class _Rows(NamedTuple):
    """Rows of bytes in global memory."""

    address: int
    pitch: int
    width: int
    height: int

    def starts(self) -> range:
        """Return the address of each row."""
        step = max(self.pitch, 1)
        return range(self.address, self.address + step * self.height, step)


def words_of(group: Group, value: Lanes) -> list[int]:
    """Return a number for each lane, from the bytes of a parameter."""
    if value.ndim == 2:
        padded = np.zeros((value.shape[0], 8), np.uint8)
        padded[:, : value.shape[1]] = value[:, :8]
        value = padded.view(np.uint64)[:, 0]
    return [int(one) for one in np.broadcast_to(value, (group.n,))]


def _copy(group: Group, arguments: list[Lanes]) -> Lanes:
    target, source, width, kind, stream = (words_of(group, one) for one in arguments[:5])
    for i in range(group.n):
        rows = [_Rows(one[i], 0, width[i], 1) for one in (target, source)]
        _queue_copy(group, i, rows, kind[i], stream[i])
    return np.zeros(1, np.uint32)


def _copy_2d(group: Group, arguments: list[Lanes]) -> Lanes:
    target, to, source, by, width, height, kind, stream = (
        words_of(group, one) for one in arguments[:8]
    )
    for i in range(group.n):
        sides = (target[i], to[i]), (source[i], by[i])
        rows = [_Rows(*side, width[i], height[i]) for side in sides]
        _queue_copy(group, i, rows, kind[i], stream[i])
    return np.zeros(1, np.uint32)


def _queue_copy(group: Group, index: int, rows: list[_Rows], kind: int, stream: int) -> None:
    if kind & 0xFFFFFFFF not in _KINDS:
        reason = f"a kernel may copy from device to device only (got kind {kind & 0xFFFFFFFF})"
        raise Fault(LAUNCH_FAILED, reason, lane=group.lane_at(index))
    target, source = rows
    _check(group, index, source, "read")
    _check(group, index, target, "write")

    def run() -> None:
        for to, by in zip(target.starts(), source.starts(), strict=True):
            ctypes.memmove(to, by, target.width)

    group.chunk.launch.children.add(run, is_tail=stream == TAIL_LAUNCH)


def _fill(group: Group, arguments: list[Lanes]) -> Lanes:
    target, value, width, stream = (words_of(group, one) for one in arguments[:4])
    for i in range(group.n):
        _queue_fill(group, i, _Rows(target[i], 0, width[i], 1), value[i], stream[i])
    return np.zeros(1, np.uint32)


def _fill_2d(group: Group, arguments: list[Lanes]) -> Lanes:
    target, pitch, value, width, height, stream = (words_of(group, one) for one in arguments[:6])
    for i in range(group.n):
        rows = _Rows(target[i], pitch[i], width[i], height[i])
        _queue_fill(group, i, rows, value[i], stream[i])
    return np.zeros(1, np.uint32)


def _queue_fill(group: Group, index: int, rows: _Rows, value: int, stream: int) -> None:
    _check(group, index, rows, "write")

    def run() -> None:
        for start in rows.starts():
            ctypes.memset(start, value & 255, rows.width)

    group.chunk.launch.children.add(run, is_tail=stream == TAIL_LAUNCH)


def _check(group: Group, index: int, rows: _Rows, verb: str) -> None:
    """Require that a thread may access each row."""
    launch, one = group.chunk.launch, group.narrow(np.array([index]))
    for start in rows.starts() if rows.width else ():
        launch.memory.require(one, start, rows.width, verb)
        if launch.read_only is not None and verb == "write":
            launch.read_only.check(one, np.array([start], np.uint64), rows.width, verb)


_FUNCTIONS: dict[str, Callable[..., Lanes]] = {
    "MemcpyAsync": _copy,
    "Memcpy2DAsync": _copy_2d,
    "MemsetAsync": _fill,
    "Memset2DAsync": _fill_2d,
}
COPIES = {f"{name}{end}": run for name, run in _FUNCTIONS.items() for end in ("", "_ptsz")}
