"""A surface: bytes of a CUDA array that kernels read and write by coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.memory.images import CudaArray
    from culaunch._emulator.types import Lanes


class Places(NamedTuple):
    """Where each lane accesses a surface: the first byte, and whether it is outside."""

    first: Lanes
    outside: Lanes


class Surface:
    """A CUDA array that kernels may write."""

    noun = "surface"

    def __init__(self, array: CudaArray) -> None:
        self.image = array

    def places(self, x: Lanes, y: Lanes, z: Lanes, size: int) -> Places:
        """Find `size` bytes from the byte `x` of a row; a place outside is the nearest inside."""
        array = self.image
        wanted = np.broadcast_arrays(x, y, z)
        shape = array.shape
        most = array.pitch - size, shape.sizes[1] - 1, shape.slices - 1
        nearest = [np.clip(one, 0, limit) for one, limit in zip(wanted, most, strict=True)]
        outside = np.logical_or.reduce([a != b for a, b in zip(wanted, nearest, strict=True)])
        x, y, z = nearest
        return Places((z * shape.sizes[1] + y) * array.pitch + x, outside)

    def load(self, first: Lanes, size: int) -> Lanes:
        """Return the bytes of each lane: ``(lanes, size)``."""
        octets: Lanes = self.image.octets[first[:, None] + np.arange(size)]
        return octets

    def store(self, first: Lanes, octets: Lanes) -> None:
        """Write the bytes of each lane; at one place the last lane wins."""
        self.image.octets[first[:, None] + np.arange(octets.shape[1])] = octets
