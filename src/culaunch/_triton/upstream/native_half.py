"""The additional attribute of a kernel while kernels are launched natively.

It is either the native half (``InstalledKernel``) or one of these, which have the reason why there
is none.
"""

from __future__ import annotations

import weakref
from typing import Any

ATTRIBUTE = "_culaunch_native"


class Refusal:
    """Why a kernel has no native half."""

    def __init__(self, kernel: Any, reason: str) -> None:
        self._kernel = weakref.ref(kernel)
        self.reason = reason

    def serves(self, kernel: Any) -> bool:
        """Whether it is about this kernel, and not about one that it is a copy of."""
        return self._kernel() is kernel


class OwnWay:
    """Stands where the native half would: this object runs Triton's Python."""

    reason = "it decides for a native kernel"

    def serves(self, kernel: Any) -> bool:  # noqa: ARG002
        """Whether it is about a kernel."""
        return True
