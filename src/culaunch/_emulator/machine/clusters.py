"""Where the blocks of a cluster are in the grid, and what names one of them.

Blocks run cluster by cluster: a chunk holds whole clusters, and the blocks of one follow each other
in the order of their ranks. Without clusters this is the order of the grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from culaunch._emulator.types import Lanes

Extent = tuple[int, int, int]


class Cluster(NamedTuple):
    """The shape of a launch's clusters; all ones if it has none."""

    x: int
    y: int
    z: int

    @property
    def size(self) -> int:
        """The blocks of a cluster."""
        return self.x * self.y * self.z

    def cluster_of(self, number: Lanes, grid: Extent) -> tuple[Lanes, Lanes, Lanes]:
        """Return the indices of the cluster that has the `number`-th block to run."""
        return _indices(number // self.size, self.extent(grid))

    def rank_of(self, number: Lanes) -> tuple[Lanes, Lanes, Lanes]:
        """Return the indices within its cluster of the `number`-th block to run."""
        return _indices(number % self.size, self)

    def block_of(self, number: Lanes, grid: Extent) -> tuple[Lanes, Lanes, Lanes]:
        """Return the indices within the grid of the `number`-th block to run."""
        clusters, ranks = self.cluster_of(number, grid), self.rank_of(number)
        x, y, z = (c * size + r for c, size, r in zip(clusters, self, ranks, strict=True))
        return x, y, z

    def extent(self, grid: Extent) -> Extent:
        """Return how many clusters a grid has along each axis."""
        return grid[0] // self.x, grid[1] // self.y, grid[2] // self.z


NO_CLUSTER = Cluster(1, 1, 1)


def _indices(flat: Lanes, shape: Extent) -> tuple[Lanes, Lanes, Lanes]:
    flat = np.asarray(flat)
    rest = flat // shape[0]
    return flat % shape[0], rest % shape[1], rest // shape[1]
