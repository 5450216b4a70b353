"""A Triton kernel that launches natively by itself, and leaves to Triton what it cannot do."""

from __future__ import annotations

import contextlib
from array import array
from typing import TYPE_CHECKING, Any, ClassVar

from culaunch._base.untraced import untraced
from culaunch._core import TritonsWay
from culaunch._triton.native_kernel import NativeKernel
from culaunch._triton.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

    from culaunch._core import TritonVariant
    from culaunch._triton.classes import Classes
    from culaunch._triton.reads import Guard
    from culaunch._triton.report import Record


class InstalledKernel(NativeKernel):
    """The native half of a kernel of Triton's whose own calls come here.

    Parameters
    ----------
    kernel : JITFunction, Autotuner or Heuristics
        The object that is called.
    record : Record
        Counts the launches.
    classes : Classes
        What Triton's classes do while kernels are launched natively.
    """

    # Whose `run` is called is another question, which `_guarded` answers.
    _WATCHED: ClassVar[tuple[str, ...]] = ("pre_run_hooks", "debug", "device_caches")

    def __new__(
        cls,
        kernel: Any,
        record: Record,
        classes: Classes,
    ) -> Self:
        """Make one."""
        self = super().__new__(cls, kernel)
        vars(self).update(_record=record, _classes=classes, _is_retired=False)
        if self._inner is not None:
            below = FunctionBelow(self._function, record, classes)
            vars(self).update(_inner=below, _compiled=below._compiled)  # noqa: SLF001
        self._serve(kernel, record.native)
        return self

    _record: Record
    _classes: Classes
    _is_retired: bool

    def serves(self, kernel: Any) -> bool:
        """Whether it was made for a kernel, and not for one that the kernel is a copy of."""
        return self._kernel is kernel and not self._is_retired

    def retire(self) -> None:
        """Leave every further call to Triton, those of launchers that somebody has kept too."""
        vars(self)["_is_retired"] = True
        self._serve(None, self._record.native)
        self._stop()

    def __reduce__(self) -> Any:
        """Leave it out of copies of a kernel that go through pickle."""
        return type(None), ()

    # ---- what the native half calls

    @untraced
    def _tritons_way(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reason: object
    ) -> Any:
        if self._kernel is self._function:
            self._record.went_tritons_way(str(reason))
        return self._classes.launch_in_triton(self._kernel, grid, args, kwargs)

    @untraced
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kernel = self._kernel
        # Somebody has put another `run` in the place of ours: a call goes there, as it would
        # without us. If it is that `run` which has called us, going there again would never end.
        is_replaced = not self._classes.are_ours(kernel) and not self._classes.is_running(kernel)
        if self._is_retired or is_replaced:
            return kernel.run(*args, grid=grid, warmup=False, **kwargs)
        # Of a kernel below a decorator: the decorator's Python calls it.
        if any(not self._classes.are_ours(layer) for layer in self._layers_below()):
            return self._classes.launch_in_triton(kernel, grid, args, kwargs)
        return super()._guarded(grid, args, kwargs)

    @untraced
    def _tune(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: int
    ) -> tuple[dict[str, Any], dict[str, Any], Any, bool, Any, frozenset[str], bool]:
        tuned = super()._tune(grid, args, kwargs, device)
        self._record.native[0] += 1
        return tuned

    def _more_entries(self) -> Iterator[Guard]:
        """Give those of Triton's classes: that somebody changed them is no change of the kernel."""
        for layer in (self._kernel, *self._layers_below()):
            yield from self._classes.guards(layer)

    def _layers_below(self) -> Iterator[Any]:
        layer = self._kernel
        while layer is not self._function:
            layer = layer.fn
            yield layer

    def _run_of_triton(self) -> Callable[..., Any]:
        return self._classes.own_run(self._function)

    def _call_decorators(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._classes.launch_in_triton(self._kernel, grid, args, kwargs)

    def _replace(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
        self.retire()  # the next call makes another
        # Where a `run` of somebody's has come to ours, it is not called again.
        is_running = self._classes.is_running(self._kernel)
        run = self._classes.run_of(self._kernel) if is_running else self._kernel.run
        return lambda grid, args, kwargs: run(*args, grid=grid, warmup=False, **kwargs)

    def _load(self, kernel: Any, description: list[tuple[Any, Any]], device: int) -> TritonVariant:
        with _else_tritons_way():
            return super()._load(kernel, description, device)


class FunctionBelow(NativeKernel):
    """What decorators launch while they decide: what cannot be native is Triton's here as well."""

    def __new__(cls, function: Any, record: Record, classes: Classes) -> Self:
        """Make one for a JIT function."""
        self = super().__new__(cls, function)
        vars(self).update(_record=record, _classes=classes)
        # The call as a whole is counted.
        self._serve(None, array("Q", [0]))
        return self

    _record: Record
    _classes: Classes

    @untraced
    def _tritons_way(
        self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], reason: object
    ) -> Any:
        self._record.went_tritons_way(str(reason))
        return self._classes.launch_in_triton(self._function, grid, args, kwargs)

    def _run_of_triton(self) -> Callable[..., Any]:
        return self._classes.own_run(self._function)

    def _load(self, kernel: Any, description: list[tuple[Any, Any]], device: int) -> TritonVariant:
        with _else_tritons_way():
            return super()._load(kernel, description, device)


@contextlib.contextmanager
def _else_tritons_way() -> Iterator[None]:
    try:
        yield
    except triton_module("runtime.errors").OutOfResources:
        raise  # the autotuner passes such a configuration over
    except Exception as error:
        raise TritonsWay(f"{type(error).__name__}: {error}") from error
