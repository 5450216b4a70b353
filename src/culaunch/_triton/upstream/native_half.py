"""The additional attribute of a kernel while kernels are launched natively.

It is either the native half (``InstalledKernel``) or one of these objects, which contain the reason
why there is none.
"""

from __future__ import annotations

import weakref
from typing import Any

ATTRIBUTE = "_culaunch_native"


class Refusal:
    """The reason why a kernel has no native half."""

    def __init__(self, kernel: Any, reason: str) -> None:
        self._kernel = weakref.ref(kernel)
        self.reason = reason

    def serves(self, kernel: Any) -> bool:
        """Whether it belongs to this kernel, and not to the original of a copy."""
        return self._kernel() is kernel


class OwnWay:
    """Replaces the native half of an object that runs Triton's Python."""

    reason = "it decides for a native kernel"

    def serves(self, kernel: Any) -> bool:  # noqa: ARG002
        """Whether it belongs to a kernel."""
        return True
