"""Plain Triton kernels in a body: Triton launches these itself, which no program can record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.places import Place, is_ours

if TYPE_CHECKING:
    from types import TracebackType

_TRITON = ("triton.runtime.jit", "triton.runtime.autotuner")


class PlainKernelError(TypeError):
    """A body launches a kernel that is not native. Other arguments would not help."""


def require_no_plain_kernel(error: Exception) -> None:
    """Name the kernel and the way if an error comes from Triton's own launch in a body.

    Triton's own error varies: it has no device, or a stand-in is not a tensor.
    """
    caller: TracebackType | None = None
    at = error.__traceback__
    while at is not None:
        module = at.tb_frame.f_globals.get("__name__")
        if module in _TRITON and caller is not None and not isinstance(error, Warning):
            kernel = _name(at)
            place = Place(caller.tb_frame.f_code.co_filename, caller.tb_lineno)
            raise PlainKernelError(
                f"at {place.text()}: {kernel} is a plain Triton kernel, which Triton launches in "
                "Python, but a function can record only native launches. Before the function, "
                f"write {kernel} = culaunch.triton.native({kernel})"
            ) from error
        # Native kernels also call Triton, to compile.
        if is_ours(at.tb_frame) and caller is not None:
            return
        caller = None if is_ours(at.tb_frame) else at
        at = at.tb_next


def _name(at: TracebackType) -> str:
    kernel: Any = at.tb_frame.f_locals.get("self")
    while hasattr(kernel, "fn"):
        kernel = kernel.fn
    return str(getattr(kernel, "__name__", "the kernel"))
