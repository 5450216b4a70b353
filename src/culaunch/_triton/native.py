"""``native``: the calls of a Triton kernel without Triton's Python."""

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
        What ``@triton.jit`` makes, under ``@triton.autotune`` and ``@triton.heuristics`` or not.
        What ``TRITON_INTERPRET=1`` makes is given back as it is.

    Returns
    -------
    NativeKernel
        ``kernel[grid](*args, **kwargs)`` as before. A new specialisation is compiled by Triton and
        then loaded by culaunch; every further call is bound, specialised, looked up and launched
        by native code.

    Raises
    ------
    TypeError
        If it is not a Triton kernel, or one of a class with a ``run`` of its own.
    MissingDependencyError
        If Triton is not installed, or has not what culaunch reads of it.
    """
    check_supported()
    known = triton_kinds()
    # Asking twice is no mistake: a library may have done it already.
    if isinstance(kernel, NativeKernel) or _interpreted(kernel):
        return cast("NativeKernel", kernel)  # what Triton interprets is called alike
    stand_in_where_triton_has_no_driver()
    if isinstance(kernel, known):
        try:
            return cast("NativeKernel", made_native(kernel))
        except Unknown as unknown:
            raise TypeError(
                f"native() cannot launch {kernel!r}: {unknown}. Launch it as it is"
            ) from None
    raise TypeError(
        "native() takes what @triton.jit makes, with @triton.autotune and @triton.heuristics above "
        f"it or not (got {type(kernel).__module__}.{type(kernel).__qualname__})"
    )


def _interpreted(kernel: Any) -> bool:
    while hasattr(kernel, "fn") and type(kernel).__name__ != "InterpretedFunction":
        kernel = kernel.fn
    return type(kernel).__name__ == "InterpretedFunction"
