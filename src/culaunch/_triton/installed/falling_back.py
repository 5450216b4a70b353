"""``FallingBack``: a native kernel that leaves calls to Triton if it cannot launch them."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._core import TritonFallback
from culaunch._triton.native_kernel import NativeKernel
from culaunch._triton.upstream.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from culaunch._core import TritonVariant
    from culaunch._triton.installed.classes import Classes
    from culaunch._triton.report import Record


class FallingBack(NativeKernel):
    """A kernel that Triton launches if it cannot be native.

    Decorators launch this object while they decide. Only their call is counted.

    Parameters
    ----------
    kernel : JITFunction, Autotuner or Heuristics
    record : Record
        Counts the launches.
    classes : Classes
        What Triton's classes do while kernels are launched natively.
    """

    def __new__(cls, kernel: Any, record: Record, classes: Classes) -> Self:
        """Make one."""
        self = super().__new__(cls, kernel)
        vars(self).update(_record=record, _classes=classes)
        self._serve(None, array("Q", [0]))
        return self

    _record: Record
    _classes: Classes

    # ---- called by the native half

    @untraced
    def _fall_back(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reason: object
    ) -> Any:
        # Launches by decorators are counted where they happen.
        if self._kernel is self._function:
            self._record.fell_back(str(reason))
        return self._classes.launch_in_triton(self._kernel, grid, args, kwargs)

    # ---- helpers

    def _run_of_triton(self) -> Callable[..., Any]:
        return self._classes.own_run(self._function)

    def _load(self, kernel: Any, description: list[tuple[Any, Any]], device: int) -> TritonVariant:
        try:
            return super()._load(kernel, description, device)
        except triton_module("runtime.errors").OutOfResources:
            raise  # the autotuner skips this configuration
        except Exception as error:
            raise TritonFallback(f"{type(error).__name__}: {error}") from error
