"""``WatchingDispatcher``: detects changes of Triton's objects between two calls."""

# ruff: noqa: SLF001 - of dispatchers: names without an underscore are those of Triton's object

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from culaunch._base.untraced import untraced
from culaunch._triton.decorators.stack import Stack
from culaunch._triton.live.choosing_dispatch import ChoosingDispatcher
from culaunch._triton.live.tritons_run import idle_guards, run_as_triton
from culaunch._triton.reads.purity import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from culaunch._triton.live.compiled_kernels import CompiledKernels
    from culaunch._triton.reads.guards import Guards
    from culaunch._triton.reads.reads import Guard


class WatchingDispatcher(ChoosingDispatcher):
    """Analyzes a kernel again after a relevant change, or if Triton would run Python.

    While nothing changes, and Triton's ``run`` would only launch, no call gets here: native code
    compares the guards.
    """

    # The attributes of a JIT function that Triton reads at each call.
    _WATCHED: ClassVar[tuple[str, ...]] = ("run", "pre_run_hooks", "debug", "device_caches")

    _kernel: Any
    _function: Any
    _compiled: CompiledKernels
    # The guards of the last analysis; at first only the decorators'.
    _own_guards: Guards
    # The replacement, once the kernel has other decorators than at its creation.
    _successor: WatchingDispatcher | None

    # ---- called by the native half

    def _prepare(self) -> None:
        super()._prepare()
        is_as_made = self._own_guards.hold()
        self._watch()  # hooks may be there before the first call
        if not is_as_made:
            self._changed()

    @untraced
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Handle a call after a change or with a hook installed: rarely, or while profiling."""
        if self._successor is not None:
            return self._successor._call(grid, args, kwargs)
        if not self._guards_hold():
            if not self._own_guards.hold():
                successor = self._changed()
                if successor is not None:
                    return successor(grid, args, kwargs)
            self._watch()
        # Hooks receive the decorators' choice, so the decorators run and call the function.
        if self._stack.is_decorated and self._function.pre_run_hooks:
            return self._call_decorators(grid, args, kwargs)
        return run_as_triton(self, self._function, grid, args, kwargs)

    def _call_decorators(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let the decorators' Python call the function."""
        assert self._driver is not None
        return self._tune(grid, args, kwargs, self._driver.current_device())[4]

    # ---- changes

    def _are_as_before(self) -> bool:
        """Whether the dependencies of calls are unchanged. Hooks are ignored."""
        return self._guards_hold() or self._own_guards.hold()

    def _changed(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None:
        """Analyze the kernel again, and return this dispatcher's replacement, if any."""
        # If only the contents of the same decorators change, such as a cache entry, new guards are
        # enough. Other decorators need another dispatcher, whose key has other parameters.
        stack = _stack_of(self._kernel)
        if stack is not None and stack.fingerprint == self._stack.fingerprint:
            vars(self)["_stack"] = stack
            self._grid_guards.clear()
            self._compiled.forget()
            self._clear()
            return None
        return self._replace()

    def _replace(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
        """Retire, and return the object to call for the kernel's present state."""
        raise NotImplementedError

    def _stop(self) -> None:
        """Route all later calls to ``_guarded``."""
        # This guard never holds: a list of hooks that is not empty.
        self._set_guards((), ([None],), (), ())

    # ---- watched objects

    def _watch(self) -> None:
        """Guard the present dependencies of calls."""
        guards = vars(self)["_own_guards"] = self._guards()
        entries = (*guards.entries, *guards.quick, *self._more_entries())
        self._set_guards(entries, tuple(guards.hooks), tuple(guards.lists), tuple(guards.cells))

    def _watch_more(self) -> None:
        # If something changed meanwhile, the old guards stay, and the next call detects it.
        if self._are_as_before():
            self._watch()

    def _guards(self) -> Guards:
        """Return the guards under which a call needs no Python."""
        guards = self._stack.guards()
        guards.add(idle_guards(self._function))
        guards.add(self._compiled.guards())
        guards.entries += self._grid_guards
        for name in self._WATCHED:
            guards.attribute(self._function, name)
        return guards

    def _more_entries(self) -> Iterable[Guard]:
        """Return further conditions of a call that are not part of the kernel."""
        return ()


def _stack_of(kernel: Any) -> Stack | None:
    try:
        return Stack(kernel)
    except (Unknown, TypeError):
        return None
