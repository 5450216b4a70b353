"""The allocators that a program has set in Triton, for the scratch memory of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.upstream.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Callable


def users_allocator(which: str) -> Callable[[int, int, int], object] | None:
    """Return the allocator that the user set, for ``"global"`` or ``"profile"`` scratch."""
    name = "_allocator" if which == "global" else "_profile_allocator"
    holder: Any = getattr(triton_module("runtime._allocation"), name, None)
    allocator = holder.get() if hasattr(holder, "get") else holder
    if allocator is None or type(allocator).__name__ == "NullAllocator":
        return None
    return allocator  # type: ignore[no-any-return]
