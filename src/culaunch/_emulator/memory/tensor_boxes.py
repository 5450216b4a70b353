"""The elements of a tensor that one copy moves, in each mode of a tensor map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.memory.tensor_map import CORNER_BITS

if TYPE_CHECKING:
    from culaunch._emulator.memory.tensor_map import TensorMap
    from culaunch._emulator.types import Lanes

_ROWS = 4  # of tile::gather4 and tile::scatter4
_ROW_MODES = ("tile::gather4", "tile::scatter4")
# The mode of the map for other modes of a copy.
_MAPS = {**dict.fromkeys(_ROW_MODES, "tile"), "im2col_no_offs": "im2col"}
_MOST_HALO = {"im2col::w": 511, "im2col::w::128": 31}
_MOST_OFFSET = 31  # in these modes
_GROUP = 32  # the pixels of im2col::w::128 before each halo


def misuse(tensor: TensorMap, mode: str, start: list[int], offsets: list[int]) -> str | None:
    """Return why a copy may not use a map so; None if it may.

    Parameters
    ----------
    tensor : TensorMap
    mode : str
        As an instruction names it.
    start : list of int
        The coordinates of the instruction, the innermost first; a row mode has four of rows.
    offsets : list of int
        The im2col offsets, for each axis but the channels and the images; may be empty. The
        modes ``im2col::w`` and ``im2col::w::128`` have the pixels of a halo, and an offset of W.
    """
    if tensor.mode != _MAPS.get(mode, mode):
        made = "tiled" if tensor.mode == "tile" else tensor.mode
        return f"the mode of the copy is {mode}, but the mode of the tensor map is {made}"
    rank = len(tensor.extents)
    given = len(start) - (_ROWS - 1) * (mode in _ROW_MODES)
    if given != rank:
        return f"{counted(given, 'coordinate')} for a tensor map of {counted(rank, 'axis')}"
    if mode in _ROW_MODES:
        rows = tensor.shape[1] if rank == 2 else 0
        return None if rows == 1 else f"the mode {mode} needs a tensor map with boxes of one row"
    if not tensor.is_im2col:
        return None
    if tensor.mode in _MOST_HALO:
        limits = [_MOST_HALO[tensor.mode], _MOST_OFFSET]
    else:
        limits = [(1 << CORNER_BITS[rank]) - 1] * (rank - 2)
    if offsets and len(offsets) != len(limits):
        return f"{counted(len(offsets), 'im2col offset')} for a tensor map of {rank} axes"
    for offset, most in zip(offsets, limits, strict=False):
        if offset > most:
            return f"an im2col offset is {offset}, but the largest for {rank} axes is {most}"
    box = f"from {tensor.lower} to {tensor.ends}"
    inside = map(int.__le__, tensor.ends, tensor.extents[1:-1])
    if mode == "im2col_no_offs" and not (min(tensor.lower) >= 0 and all(inside)):
        # Measured on an H200. No document says it.
        return (
            f"the bounding box {box} of a copy in the mode {mode} is not inside the tensor "
            f"{tensor.extents[1:-1]}: a GPU ends it with an illegal instruction"
        )
    # A wide copy may begin on the left side of the box.
    lower = tensor.lower if tensor.mode == "im2col" else start[1:2]
    walks = zip(lower, start[1:-1], tensor.ends, strict=False)
    if all(low <= at < end for low, at, end in walks):
        return None
    return f"the coordinates {tuple(start[1:-1])} are outside of the bounding box {box}"


def box_elements(tensor: TensorMap, mode: str, start: list[int], offsets: list[int]) -> Lanes:
    """Return the coordinates of each element: a row for each axis, in the order of the copy."""
    if tensor.is_im2col:
        return _column(tensor, start, offsets)
    if mode in _ROW_MODES:
        columns = start[0] + np.arange(tensor.shape[0])
        return np.stack([np.tile(columns, _ROWS), np.repeat(start[1:], columns.shape[0])])
    # The innermost axis is the first of the map and the last of an array.
    place = np.indices(tensor.shape[::-1]).reshape(len(start), -1)[::-1]
    at: Lanes = np.array(start)[:, None] + place * np.array(tensor.steps)[:, None]
    return at


def _column(tensor: TensorMap, start: list[int], offsets: list[int]) -> Lanes:
    """Walk over the bounding box from `start`, image after image."""
    channels, pixels = tensor.box
    walked = len(tensor.lower)  # a wide copy stays at its H and D
    count = np.arange(pixels)
    if tensor.mode in _MOST_HALO:
        halo, offset = offsets or (0, 0)
        offsets = [offset, *(0 for _ in start[2:-1])]
        count = np.arange(pixels + halo)
        if tensor.mode == "im2col::w::128":
            groups = np.arange(0, 128, _GROUP)
            count = (groups[:, None] + np.arange(_GROUP + halo)).reshape(-1)
    # Steps along an axis. An axis that wraps around is one step of the next axis.
    axes = []
    walks = zip(start[1:], tensor.lower, tensor.ends, tensor.steps[1:], strict=False)
    for first, low, end, step in walks:
        rest = count - -(-(end - first) // step)
        whole = -(-(end - low) // step)
        axes.append(np.where(rest < 0, first + count * step, low + rest % whole * step))
        count = np.where(rest < 0, 0, 1 + rest // whole)
    axes += [np.full(count.shape, at) for at in start[1 + walked : -1]]
    # The offsets move the pixels and the bounding box alike.
    axes = [at + offset for at, offset in zip(axes, offsets or [0] * len(axes), strict=True)]
    pixel = np.stack([*axes, start[-1] + count])
    channel = start[0] + np.arange(channels)
    return np.vstack([np.tile(channel, count.shape[0]), np.repeat(pixel, channels, axis=1)])
