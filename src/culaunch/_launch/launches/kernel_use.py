"""The resources of a device that a kernel uses, and the number of its blocks that fit."""

from __future__ import annotations

from dataclasses import dataclass

from culaunch._base.values import as_html, field_lines


@dataclass(frozen=True)
class KernelAttributes:
    """The resources and limits of a kernel on one device (driver API, ``cuKernelGetAttribute``).

    Attributes
    ----------
    max_threads_per_block : int
    registers : int
        Registers per thread.
    static_shared, const_bytes, local_bytes : int
        Static shared memory per block, user constants, and local memory per thread, in bytes.
    max_dynamic_shared : int
        The largest dynamic shared memory that a launch may request, in bytes. Launchers opt in to
        it automatically.
    ptx_version, binary_version : int
        The virtual and the real architecture of the compiled code, as 10 major + minor.

    Examples
    --------
    >>> kernel.attributes().max_threads_per_block
    1024
    """

    max_threads_per_block: int
    registers: int
    static_shared: int
    const_bytes: int
    local_bytes: int
    max_dynamic_shared: int
    ptx_version: int
    binary_version: int

    def __str__(self) -> str:
        return field_lines(self)

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True)
class Occupancy:
    """How many blocks of a kernel fit a device (driver API, "Occupancy").

    Attributes
    ----------
    active_blocks : int
        Blocks of the asked size that a multiprocessor runs at once.
    suggested_block, suggested_grid : int
        The block size, in threads, with the best occupancy, and the fewest blocks that fill the
        device with it.
    max_cluster : int or None
        The largest cluster, in blocks, that this block can be launched in; None on devices
        without clusters (before sm_90).
    active_clusters : int or None
        Clusters of the asked size that the device runs at once, if a cluster was asked for.

    Examples
    --------
    >>> kernel.occupancy(256).active_blocks > 0
    True
    """

    active_blocks: int
    suggested_block: int
    suggested_grid: int
    max_cluster: int | None
    active_clusters: int | None

    def __str__(self) -> str:
        return field_lines(self)

    def _repr_html_(self) -> str:
        return as_html(self)
