"""Correct programs of CUB, libcu++, cooperative groups, Thrust and CUTLASS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpus._cub_blocks import BLOCKS
from corpus._cub_device import DEVICE
from corpus._cutlass import CUTLASS
from corpus._libcudacxx import STANDARD_LIBRARY
from corpus._more_groups import COOPERATIVE_GROUPS
from corpus._thrust import THRUST

if TYPE_CHECKING:
    from corpus._case import Case

LIBRARIES: tuple[Case, ...] = (
    *BLOCKS, *DEVICE, *STANDARD_LIBRARY, *COOPERATIVE_GROUPS, *THRUST, *CUTLASS,
)  # fmt: skip
