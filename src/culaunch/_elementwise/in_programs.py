"""The kernels that a call of a fused function needs in a program that is saved or exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._core import Elementwise as CoreElementwise
from culaunch._elementwise.kernels import kernel_for
from culaunch._elementwise.loop import BLOCK, Layout, mapped, unroll
from culaunch._launch.devices.driver import current_driver
from culaunch._launch.launches.recording import KERNELS_OF_CALLS, CallKernels, LoopKernel

if TYPE_CHECKING:
    from culaunch._elementwise.element_code import ElementCode

_PACK = 16  # bytes that a thread reads at once


def kernels_of(function: Any, numbers: bytes, rank: int) -> CallKernels:
    """Compile, for the current device, a kernel for dense arrays and one for any strides.

    Parameters
    ----------
    function : ElementwiseFunction
    numbers : bytes
        The element types of the arguments.
    rank : int
        Of the results, at least 1.
    """
    _, roles, scalars, _, code = function._specialize(numbers)  # noqa: SLF001
    arrays = [*code.outputs, *mapped(code)]
    # As many elements as the widest type allows. Narrower types are read in smaller packs.
    vector = _PACK // max(one.dtype.itemsize for one in arrays)
    dense = Layout("contiguous", vector, 1, wide=False, classes="u" * len(arrays))
    # 64-bit offsets and only strided arrays: slower than the choice of a call, and correct for all
    # layouts.
    general = Layout("strided", 1, rank, wide=True, classes="s" * len(arrays))
    return CallKernels(
        roles,
        tuple((scalars[i], scalars[i + 1]) for i in range(0, len(scalars), 2)),
        _loop(code, dense),
        _loop(code, general),
    )


def _loop(code: ElementCode, layout: Layout) -> LoopKernel:
    ordinal = current_driver().current_device()
    kernel = kernel_for(code, layout, ordinal)
    return LoopKernel(kernel, BLOCK, unroll(code, layout), layout.vector)


KERNELS_OF_CALLS[CoreElementwise] = kernels_of
