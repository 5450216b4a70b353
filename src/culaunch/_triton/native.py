"""``native``: calls of a Triton kernel without Triton's Python code."""

from __future__ import annotations

from typing import Any, cast

from culaunch._triton.decorators.layers import triton_kinds
from culaunch._triton.native_kernel import NativeKernel, made_native
from culaunch._triton.reads.purity import Unknown
from culaunch._triton.upstream.supported import check_supported
from culaunch._triton.upstream.target import stand_in_where_triton_has_no_driver


def native(kernel: Any) -> NativeKernel:
    """Make the calls of a Triton kernel native: same call, same results.

    Parameters
    ----------
    kernel : triton.runtime.JITFunction, Autotuner or Heuristics
        The kernel that ``@triton.jit`` returns, optionally under ``@triton.autotune`` and
        ``@triton.heuristics``. A kernel of ``TRITON_INTERPRET=1`` is returned unchanged.

    Returns
    -------
    NativeKernel
        Call it as before: ``kernel[grid](*args, **kwargs)``. Triton compiles a new specialization,
        and culaunch loads it. In every further call, native code binds and specializes the
        arguments, looks up the kernel and launches it.

    Raises
    ------
    TypeError
        If it is not a Triton kernel, or its class has its own ``run``.
    MissingDependencyError
        If Triton is not installed, or lacks something that culaunch reads.

    Examples
    --------
    >>> from culaunch import triton
    >>> from kernels import scale
    >>> scale = triton.native(scale)
    >>> scale.arg_names
    ['x', 'out', 'factor', 'n', 'BLOCK']
    """
    check_supported()
    known = triton_kinds()
    # A second call is not an error, because a library may have made the first one.
    if isinstance(kernel, NativeKernel) or _interpreted(kernel):
        return cast("NativeKernel", kernel)  # an interpreted kernel has the same calls
    stand_in_where_triton_has_no_driver()
    if isinstance(kernel, known):
        try:
            return cast("NativeKernel", made_native(kernel))
        except Unknown as unknown:
            raise TypeError(
                f"native() cannot launch {kernel!r}: {unknown}. Launch it without native()"
            ) from None
    raise TypeError(
        "kernel must be a @triton.jit kernel, optionally under @triton.autotune and "
        f"@triton.heuristics (got {type(kernel).__module__}.{type(kernel).__qualname__})"
    )


def _interpreted(kernel: Any) -> bool:
    while hasattr(kernel, "fn") and type(kernel).__name__ != "InterpretedFunction":
        kernel = kernel.fn
    return type(kernel).__name__ == "InterpretedFunction"
