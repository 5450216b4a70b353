"""Triton's launch hooks and allocators, whatever its version keeps them in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._core import TritonVariant

_NAMES = ("launch_enter_hook", "launch_exit_hook")
# What Triton reads at every call, and works into what it compiles: the groups of its knobs, names.
_READ = (
    ("runtime", "debug"),
    ("compilation", "instrumentation_mode"),
    ("compilation", "fpsan_homomorphic_casts"),
)


def hooks_installed() -> tuple[Any, Any]:
    """Return the enter and the exit hook; None for each that is not installed."""
    knobs = triton_module("knobs")

    found = []
    for name in _NAMES:
        hook = getattr(knobs.runtime, name)
        # From 3.5 on a chain, always there; before, a function or None.
        is_idle = hook is None or (hasattr(hook, "calls") and not hook.calls)
        found.append(None if is_idle else hook)
    return found[0], found[1]


class GivenGrid:
    """A grid as the caller gave it, or as the function said that the caller gave.

    Attributes
    ----------
    asked : object
        What is given to the native half in its place.
    value : object
        The grid; of a function what it said last.
    """

    def __init__(self, grid: Any) -> None:
        self._grid = grid
        self.asked = self._ask if callable(grid) else grid
        self.value = grid

    def _ask(self, arguments: dict[str, Any]) -> Any:
        self.value = self._grid(arguments)
        return self.value


def options_of_a_run(function: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a call with what Triton's own ``run`` puts to them."""
    knobs = triton_module("knobs")
    found = {**kwargs, "debug": kwargs.get("debug", function.debug) or knobs.runtime.debug}
    for group, name in _READ:
        holder = getattr(knobs, group, None)
        if name != "debug" and hasattr(holder, name):
            found[name] = getattr(holder, name)
    return found


def launch_metadata(
    function: Any, variant: TritonVariant, stream: int, values: dict[str, Any], grid: Any
) -> Any:
    """Make what Triton gives its launch hooks; "function" is the driver's CUkernel."""
    kernel = variant.result
    made = triton_module("compiler.compiler").LazyDict(
        # These names are what profilers read, Triton's Proton among them.
        {"name": kernel.name, "function": variant.kernel.handle, "stream": stream}
    )
    if function.launch_metadata is not None:
        made.add(function.launch_metadata, (grid, kernel.metadata, values))
    return made


def load_hooks() -> tuple[Any, Any]:
    """Return what is to be called before and after a kernel is loaded; None for neither."""
    runtime = triton_module("knobs").runtime
    names = ("kernel_load_start_hook", "kernel_load_end_hook")
    start, end = (getattr(runtime, name, None) for name in names)
    return start, end


def quiet_guards() -> tuple[list[tuple[dict[str, Any], str, bool, object]], list[list[Any]]]:
    """Return what holds while no hook is installed and no knob is turned.

    Returns
    -------
    (list, list)
        Entries of dicts, and lists that are empty.
    """
    knobs = triton_module("knobs")

    namespace = vars(knobs.runtime)
    guards: list[tuple[dict[str, Any], str, bool, object]] = []
    lists: list[list[Any]] = []
    for name in _NAMES:
        hook = getattr(knobs.runtime, name)
        is_chain = hasattr(hook, "calls")
        if is_chain:
            lists.append(hook.calls)
        # A function that is installed never passes: each call asks hooks_installed().
        # The guard below is one that cannot hold where a function is installed, by saying that the
        # entry is absent while it is there.
        is_present = name in namespace and (is_chain or hook is None)
        guards.append((namespace, name, is_present, hook if is_present else None))
    for group, name in _READ:
        knob = vars(getattr(knobs, group, None) or knobs.runtime)
        guards.append((knob, name, name in knob, knob.get(name)))
    # Likewise: what it says may change from call to call.
    is_idle = namespace.get("add_stages_inspection_hook") is None
    is_present = "add_stages_inspection_hook" in namespace and is_idle
    guards.append((namespace, "add_stages_inspection_hook", is_present, None))
    return guards, lists


def users_allocator(which: str) -> Callable[[int, int, int], object] | None:
    """Return the allocator that the user set, for ``"global"`` or ``"profile"`` scratch."""
    _allocation = triton_module("runtime._allocation")
    holder: Any = getattr(
        _allocation, "_allocator" if which == "global" else "_profile_allocator", None
    )
    allocator = holder.get() if hasattr(holder, "get") else holder
    if allocator is None or type(allocator).__name__ == "NullAllocator":
        return None
    return allocator  # type: ignore[no-any-return]
