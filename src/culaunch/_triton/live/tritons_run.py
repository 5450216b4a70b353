"""The steps of Triton's own ``run`` around a launch, and whether a call has any of them.

Both depend on the values that ``run`` reads in every call, and on where its version stores them.
"""

# ruff: noqa: SLF001 - of dispatchers: names without an underscore are those of Triton's object

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.live.used_globals import global_guards, has_changed_global
from culaunch._triton.reads.guards import Guards
from culaunch._triton.upstream.target import triton_module

if TYPE_CHECKING:
    from culaunch._core import TritonDispatcher, TritonVariant

# Called around the launch. From 3.5 on, each is a chain that always exists; before, a function or
# None.
AROUND = ("launch_enter_hook", "launch_exit_hook")
# Settings that are part of the compiled code: the groups of Triton's knobs, and names. No version
# has all of them.
COMPILED_IN = (
    ("runtime", "debug"),
    ("compilation", "instrumentation_mode"),
    ("compilation", "fpsan_homomorphic_casts"),
)
# Its result is part of the compiled code, and may differ in each call.
ASKED = "add_stages_inspection_hook"


def run_as_triton(
    dispatcher: TritonDispatcher,
    function: Any,
    grid: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Do everything that Triton's ``run`` does, in the same order, and launch natively."""
    hooks = function.pre_run_hooks
    if hooks:
        # A wrong call of this kernel must raise before the hooks run. If Triton handles the call,
        # its own `run` calls them.
        dispatcher._specialize(args, kwargs)
    for hook in hooks:
        hook(*args, **_options(function, kwargs))
    if has_changed_global(function):
        # From here on nothing is known. Triton looks up the call, and refuses it with its own order
        # and messages.
        dispatcher._clear()
    enter, leave = _hooks()
    if enter is None and leave is None:
        return dispatcher._call_plain(grid, args, kwargs)
    given = _GivenGrid(grid)
    found = dispatcher._resolve(given.asked, args, kwargs)
    if not isinstance(found, tuple):
        return found  # the autotuner has just launched it
    variant, _, stream, values, _ = found
    metadata = _launch_metadata(function, variant, stream, values, given.value)
    if enter is not None:
        enter(metadata)
    result = dispatcher._call_plain(given.value, args, kwargs)  # the grid function is called once
    if leave is not None:
        leave(metadata)
    return result


def idle_guards(function: Any) -> Guards:
    """Return the guards under which a call only has to launch the compiled kernel."""
    runtime = triton_module("knobs").runtime
    entries, unnoticed = global_guards(function)
    guards = Guards(entries, hooks=[function.pre_run_hooks])
    guards.add(hook_guards())
    if unnoticed:
        # As if a hook were always installed: `run_as_triton` compares the globals.
        guards.hooks = [[None]]
    for group, name in COMPILED_IN:
        guards.attribute(_knobs(group) or runtime, name)
    _guard_none(guards, runtime, ASKED)
    return guards


def hook_guards() -> Guards:
    """Return the guards that hold while no hook is called around launches."""
    runtime = triton_module("knobs").runtime
    guards = Guards()
    for name in AROUND:
        hook = getattr(runtime, name)
        if hasattr(hook, "calls"):
            guards.hooks.append(hook.calls)
            guards.attribute(runtime, name)
        else:
            _guard_none(guards, runtime, name)
    return guards


def has_hooks() -> bool:
    """Whether a hook is called around launches."""
    return any(hook is not None for hook in _hooks())


def _guard_none(guards: Guards, holder: Any, name: str) -> None:
    """Guard that an attribute is None. If it is not, the guard never holds."""
    # For an existing attribute, guard its absence.
    is_none = vars(holder).get(name, holder) is None
    guards.entries.append((vars(holder), name, is_none, None))


def _hooks() -> list[Any]:
    """Return the hooks around a launch; None for one that is not installed."""
    runtime = triton_module("knobs").runtime
    found = [getattr(runtime, name) for name in AROUND]
    return [hook if hook is not None and getattr(hook, "calls", True) else None for hook in found]


def _options(function: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call, including those that ``run`` adds."""
    found = dict(kwargs)
    for group, name in COMPILED_IN:
        if hasattr(_knobs(group), name):
            found[name] = getattr(_knobs(group), name)
    found["debug"] = kwargs.get("debug", function.debug) or found["debug"]
    return found


def _knobs(group: str) -> Any:
    return getattr(triton_module("knobs"), group, None)


def _launch_metadata(
    function: Any, variant: TritonVariant, stream: int, values: dict[str, Any], grid: Any
) -> Any:
    """Make the metadata for Triton's launch hooks; "function" is the driver's CUkernel."""
    kernel = variant.result
    made = triton_module("compiler.compiler").LazyDict(
        # Profilers read these names, including Triton's Proton.
        {"name": kernel.name, "function": variant.kernel.handle, "stream": stream}
    )
    if function.launch_metadata is not None:
        made.add(function.launch_metadata, (grid, kernel.metadata, values))
    return made


class _GivenGrid:
    """A grid as the caller gave it, or as the function reported it.

    Attributes
    ----------
    asked : object
        The object that is passed to the native half instead.
    value : object
        The grid; for a function, its last result.
    """

    def __init__(self, grid: Any) -> None:
        self._grid = grid
        self.asked = self._ask if callable(grid) else grid
        self.value = grid

    def _ask(self, arguments: dict[str, Any]) -> Any:
        self.value = self._grid(arguments)
        return self.value
