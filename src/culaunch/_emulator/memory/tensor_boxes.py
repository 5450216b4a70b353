"""The elements of a tensor that one copy moves, in each mode of a tensor map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culaunch._base.values import counted
from culaunch._emulator.memory.tensor_map import CORNER_BITS

if TYPE_CHECKING:
    from culaunch._emulator.memory.tensor_map import TensorMap
    from culaunch._emulator.types import Lanes

__all__ = ["box_elements", "misuse"]

_ROWS = 4  # of tile::gather4 and tile::scatter4
_ROW_MODES = ("tile::gather4", "tile::scatter4")


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
        The im2col offsets, for each axis but the channels and the images; may be empty.
    """
    if tensor.is_im2col != mode.startswith("im2col"):
        made = "im2col" if tensor.is_im2col else "tiled"
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
    if offsets and len(offsets) != rank - 2:
        return f"{counted(len(offsets), 'im2col offset')} for a tensor map of {rank} axes"
    most = (1 << CORNER_BITS[rank]) - 1
    if max(offsets, default=0) > most:
        return f"an im2col offset is {max(offsets)}, but the largest for {rank} axes is {most}"
    walks = zip(tensor.lower, start[1:-1], tensor.ends, strict=True)
    if all(low <= at < end for low, at, end in walks):
        return None
    box = f"from {tensor.lower} to {tensor.ends}"
    return f"the coordinates {tuple(start[1:-1])} are outside of the bounding box {box}"


def box_elements(tensor: TensorMap, mode: str, start: list[int], offsets: list[int]) -> Lanes:
    """Return the coordinates of each unit: a row for each axis, in the order of the copy.

    A unit is an element, or a slice of an interleaved tensor.
    """
    if tensor.is_im2col:
        return _column(tensor, start, offsets)
    if mode in _ROW_MODES:
        columns = start[0] + np.arange(tensor.shape[0])
        return np.stack([np.tile(columns, _ROWS), np.repeat(start[1:], columns.shape[0])])
    # The innermost axis is the first of the map and the last of an array. A copy keeps the layout
    # of an interleaved tensor: slices are outside of pixels, and inside of images.
    axes = [*range(len(start))]
    if tensor.interleave:
        axes.insert(-1, axes.pop(0))
    place = np.empty((len(axes), np.prod(tensor.shape)), np.int64)
    place[axes[::-1]] = np.indices([tensor.shape[axis] for axis in axes[::-1]]).reshape(place.shape)
    at: Lanes = np.array(start)[:, None] + place * np.array(tensor.steps)[:, None]
    return at


def _column(tensor: TensorMap, start: list[int], offsets: list[int]) -> Lanes:
    """Walk over the bounding box from `start`, image after image."""
    channels, pixels = tensor.box
    # Steps along an axis. An axis that wraps around is one step of the next axis.
    count = np.arange(pixels)
    axes = []
    walks = zip(start[1:-1], tensor.lower, tensor.ends, tensor.steps[1:-1], strict=True)
    for first, low, end, step in walks:
        rest = count - -(-(end - first) // step)
        whole = -(-(end - low) // step)
        axes.append(np.where(rest < 0, first + count * step, low + rest % whole * step))
        count = np.where(rest < 0, 0, 1 + rest // whole)
    # The offsets move the pixels and the bounding box alike.
    axes = [at + offset for at, offset in zip(axes, offsets or [0] * len(axes), strict=True)]
    pixel = np.stack([*axes, start[-1] + count])
    channel = start[0] + np.arange(channels) * tensor.steps[0]
    if tensor.interleave:
        return np.vstack([np.repeat(channel, pixels), np.tile(pixel, channels)])
    return np.vstack([np.tile(channel, pixels), np.repeat(pixel, channels, axis=1)])
