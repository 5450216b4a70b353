"""``InstalledKernel``: a kernel of Triton's whose own calls are native."""

# ruff: noqa: SLF001 - of dispatchers: names without an underscore are those of Triton's object

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar

from culaunch._base.untraced import untraced
from culaunch._triton.decorators.layers import layers_of
from culaunch._triton.installed.falling_back import FallingBack
from culaunch._triton.live.used_globals import global_guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

    from culaunch._triton.calls.choice import Tuned
    from culaunch._triton.installed.classes import Classes
    from culaunch._triton.reads.reads import Guard
    from culaunch._triton.report import Record


class InstalledKernel(FallingBack):
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

    def __new__(cls, kernel: Any, record: Record, classes: Classes) -> Self:
        """Make one."""
        self = super().__new__(cls, kernel, record, classes)
        vars(self).update(_layers=layers_of(kernel), _is_retired=False)
        if self._inner is not None:
            below = FallingBack(self._function, record, classes)
            vars(self).update(_inner=below, _compiled=below._compiled)
        self._serve(kernel, record.native)
        return self

    _layers: list[Any]
    _is_retired: bool

    def serves(self, kernel: Any) -> bool:
        """Whether it was made for a kernel, and not for one that the kernel is a copy of."""
        return self._kernel is kernel and not self._is_retired

    def retire(self) -> None:
        """Leave all later calls to Triton, even through launchers that a program kept."""
        vars(self)["_is_retired"] = True
        self._serve(None, self._record.native)
        self._stop()

    def __reduce__(self) -> Any:
        """Omit it from copies of a kernel made through pickle."""
        return type(None), ()

    # ---- called by the native half

    @untraced
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        kernel, classes = self._kernel, self._classes
        # Other code has replaced our `run`. A call goes there, as without culaunch, and may return
        # here.
        is_replaced = not classes.are_ours(kernel) and not classes.is_running(kernel)
        if self._is_retired or is_replaced:
            return classes.call(kernel, grid, args, kwargs)
        # A kernel below a decorator, whose Python code calls it.
        if not all(map(classes.are_ours, self._layers[1:])):
            return classes.launch_in_triton(kernel, grid, args, kwargs)
        return super()._guarded(grid, args, kwargs)

    @untraced
    def _tune(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: int) -> Tuned:
        tuned = super()._tune(grid, args, kwargs, device)
        self._record.native[0] += 1
        return tuned

    def _call_decorators(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._classes.launch_in_triton(self._kernel, grid, args, kwargs)

    # ---- helpers

    def _watch(self) -> None:
        # Its first call may come after it was retired.
        if self._is_retired:
            self._stop()
            return
        super()._watch()
        for name in global_guards(self._function)[1]:
            self._record.note(
                f"the global {name} is compared at every launch: it may change in place"
            )

    def _replace(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
        self.retire()  # the next call makes a new one
        return functools.partial(self._classes.call, self._kernel)

    def _more_entries(self) -> Iterator[Guard]:
        """Return Triton's class attributes. Changing them is not a change of the kernel."""
        for layer in self._layers:
            yield from self._classes.guards(layer)
