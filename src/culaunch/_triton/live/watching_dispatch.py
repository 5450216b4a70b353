"""``WatchingDispatcher``: Triton's objects may change between two calls, and the next one obeys."""

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
    """Looks again at a kernel where what calls depend on has changed, or Triton would run Python.

    While all is as it was, and Triton's ``run`` would only launch, no call comes here: native code
    compares the guards.
    """

    # The attributes of a JIT function that Triton reads at each call.
    _WATCHED: ClassVar[tuple[str, ...]] = ("run", "pre_run_hooks", "debug", "device_caches")

    _kernel: Any
    _function: Any
    _compiled: CompiledKernels
    # The state that calls depend on, as of the last look: at first only the decorators.
    _own_guards: Guards
    # The replacement once the kernel has other decorators than those it was made from.
    _successor: WatchingDispatcher | None

    # ---- what the native half calls

    def _prepare(self) -> None:
        super()._prepare()
        is_as_made = self._own_guards.hold()
        self._watch()  # hooks may be there before the first call
        if not is_as_made:
            self._changed()

    @untraced
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call where something changed or a hook is installed: rarely, or while profiling."""
        if self._successor is not None:
            return self._successor._call(grid, args, kwargs)
        if not self._guards_hold():
            if not self._own_guards.hold():
                successor = self._changed()
                if successor is not None:
                    return successor(grid, args, kwargs)
            self._watch()
        # Hooks are given what decorators chose: they run, and call the function.
        if self._stack.is_decorated and self._function.pre_run_hooks:
            return self._call_decorators(grid, args, kwargs)
        return run_as_triton(self, self._function, grid, args, kwargs)

    def _call_decorators(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let the decorators' Python call the function."""
        assert self._driver is not None
        return self._tune(grid, args, kwargs, self._driver.current_device())[4]

    # ---- what has changed

    def _are_as_before(self) -> bool:
        """Whether what calls depend on is as it was; hooks may be there."""
        return self._guards_hold() or self._own_guards.hold()

    def _changed(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None:
        """Look again at the kernel: return what is called in this one's place, if anything is."""
        # The same decorators with other contents, such as another cache entry, need only new
        # guards. Other decorators need another dispatcher, whose key has other parameters.
        stack = _stack_of(self._kernel)
        if stack is not None and stack.fingerprint == self._stack.fingerprint:
            vars(self)["_stack"] = stack
            self._grid_guards.clear()
            self._compiled.forget()
            self._clear()
            return None
        return self._replace()

    def _replace(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
        """Give up: return what is called for the kernel as it is now."""
        raise NotImplementedError

    def _stop(self) -> None:
        """Let every further call come to ``_guarded``."""
        # A guard that never holds: a list of hooks that has one.
        self._set_guards((), ([None],), (), ())

    # ---- what is watched

    def _watch(self) -> None:
        """Guard what calls depend on, as it is now."""
        guards = vars(self)["_own_guards"] = self._guards()
        entries = (*guards.entries, *guards.quick, *self._more_entries())
        self._set_guards(entries, tuple(guards.hooks), tuple(guards.lists), tuple(guards.cells))

    def _watch_more(self) -> None:
        # Where something changed meanwhile, the guards stay: they tell the next call.
        if self._are_as_before():
            self._watch()

    def _guards(self) -> Guards:
        """Return what must be as it is for a call to need no Python."""
        guards = self._stack.guards()
        guards.add(idle_guards(self._function))
        guards.add(self._compiled.guards())
        guards.entries += self._grid_guards
        for name in self._WATCHED:
            guards.attribute(self._function, name)
        return guards

    def _more_entries(self) -> Iterable[Guard]:
        """Return what a call needs besides, and is not of the kernel."""
        return ()


def _stack_of(kernel: Any) -> Stack | None:
    try:
        return Stack(kernel)
    except (Unknown, TypeError):
        return None
