"""What an emulated device checks, and how it runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Options"]


def _to_stdout(text: str) -> None:
    sys.stdout.write(text)


@dataclass(frozen=True)
class Options:
    """Settings of an emulated device.

    Parameters
    ----------
    check_uninitialized : bool
        Report uses of shared memory that the block has not written.
    check_races : bool
        Report accesses of two threads to the same shared memory, one of them a write, that
        nothing orders.
    lanes : int
        About how many threads to run at once.
    time_limit : float, optional
        Seconds after which a launch is given up as one that does not end.
    write : callable
        Receives what kernels print.
    """

    check_uninitialized: bool = True
    check_races: bool = False
    lanes: int = 1 << 15
    time_limit: float | None = None
    write: Callable[[str], None] = _to_stdout
