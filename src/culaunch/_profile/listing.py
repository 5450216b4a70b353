"""The contents of a profile, complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._profile.kernel_profile import KernelProfile
    from culaunch._profile.launch import Launch


@dataclass(frozen=True)
class Listing:
    """The launches of a block, its rows, and the number of launches past the limit."""

    launches: tuple[Launch, ...]
    kernels: tuple[KernelProfile, ...]
    is_emulated: bool
    omitted: int
