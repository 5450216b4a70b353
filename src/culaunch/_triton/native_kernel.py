"""A Triton kernel whose calls do not go through Triton's Python."""

# ruff: noqa: SLF001 - of other native kernels: own names begin with an underscore, as the others
# are those of Triton's object

from __future__ import annotations

import copy
import os
from typing import TYPE_CHECKING, Any, ClassVar

from culaunch._base.untraced import untraced
from culaunch._base.values import spell
from culaunch._core import TritonLauncher
from culaunch._launch.compiled_regions import in_regions
from culaunch._triton.autotuner import ATTRIBUTE, called_layer
from culaunch._triton.choosing_dispatch import ChoosingDispatcher
from culaunch._triton.compiled_kernels import CompiledKernels
from culaunch._triton.guards import Guards
from culaunch._triton.hooks import (
    GivenGrid,
    hooks_installed,
    launch_metadata,
    options_of_a_run,
    quiet_guards,
    users_allocator,
)
from culaunch._triton.just_in_time import compile_kernel, forget_keys, load_compiled
from culaunch._triton.parameters import parameters_of
from culaunch._triton.purity import Unknown
from culaunch._triton.stack import Stack
from culaunch._triton.target import compiling_for, triton_module
from culaunch._triton.used_globals import changed_global, check_globals, global_guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

    from culaunch._core import DispatcherMethods, TritonVariant
    from culaunch._launch.recording import RecordingBody
    from culaunch._triton.dispatcher import Dispatcher
    from culaunch._triton.reads import Guard


class NativeKernel(ChoosingDispatcher):
    """A Triton kernel that is launched natively; :func:`native` makes one.

    Everything else that the Triton object has (``arg_names``, ``cache``, ``configs``, ...) is
    there too; setting it sets it on the Triton object, and the next call obeys.

    Parameters
    ----------
    kernel : JITFunction, Autotuner or Heuristics

    Raises
    ------
    TypeError
        If it is no kernel of Triton.
    """

    # What Triton reads of a JIT function when it is made.
    _FIXED = frozenset(
        {"annotations", "arg_names", "constexprs", "do_not_specialize",
         "do_not_specialize_on_alignment", "name", "params", "signature"}
    )  # fmt: skip

    # What Triton reads of it at each call.
    _WATCHED: ClassVar[tuple[str, ...]] = ("run", "pre_run_hooks", "debug", "device_caches")

    def __new__(cls, kernel: Any) -> Self:
        """Make one of a kernel, with the decorators above it or not."""
        autotuner = triton_module("runtime.autotuner")
        kinds = (
            triton_module("runtime.jit").JITFunction,
            autotuner.Autotuner,
            autotuner.Heuristics,
        )
        if not isinstance(kernel, kinds):
            raise TypeError(f"kernel must be a kernel of Triton (got {spell(kernel)})")
        stack = Stack(kernel)
        function = stack.function
        # Whatever a call leaves out may be set by decorators, those of other classes too: where it
        # is not, they say what is missing.
        optional = frozenset(function.arg_names) if stack.is_decorated else stack.chosen
        self = super().__new__(cls, function.__name__, parameters_of(function, optional), stack.key)
        inner = NativeKernel(function) if stack.is_decorated else None
        vars(self).update(
            _kernel=kernel,
            _function=function,
            own_parameters=parameters_of(function, stack.chosen),
            _stack=stack,
            _inner=inner,
            _successor=None,
            _first_guards=stack.guards(),
            _grid_guards=[],
            # One table for both halves: what the inner one loaded while decorators decided is what
            # later calls launch.
            _compiled=CompiledKernels(function) if inner is None else inner._compiled,
            _own_guards=Guards(),
        )
        for name in ("__doc__", "__name__", "__qualname__", "__module__", "__globals__"):
            if hasattr(kernel, name):
                vars(self)[name] = getattr(kernel, name)
        return self

    _kernel: Any
    _function: Any
    # What the decorators depended on when they were looked at.
    _first_guards: Guards
    # What stands in its place once the kernel has other decorators than it was made from.
    _successor: NativeKernel | None
    _compiled: CompiledKernels
    _own_guards: Guards

    # ---- what Triton's objects have

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch, or compile alone, as Triton's objects call each other."""
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        return self._call(grid, args, kwargs)

    @untraced
    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile for these arguments, or types of arguments, and launch nothing."""
        if self._driver is None:
            self._prepare()
        assert self._driver is not None
        with compiling_for(self._driver, self._driver.current_device()):
            forget_keys(self._function)
            return self._kernel.warmup(*args, grid=grid, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refuse, as Triton does: a launch needs a grid."""
        raise RuntimeError(
            f"{self.name} is launched with a grid: {self.name}[grid](...). Kernels that call it "
            "need Triton's own object, without native()"
        )

    def __getattr__(self, name: str) -> Any:
        # What Python itself looks for, by names with two underscores, is of this object. So is the
        # native half that Triton's may have.
        kernel = vars(self).get("_kernel")
        if kernel is None or name.startswith("__") or name == ATTRIBUTE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(kernel, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or (name in self._FIXED and not self._stack.is_decorated):
            raise AttributeError(
                f"{name!r} of a native kernel cannot be set: set it on Triton's object, and call "
                "native() on that again"
            )
        setattr(self._kernel, name, value)

    def __delattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(f"{name!r} of a native kernel cannot be deleted")
        delattr(self._kernel, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._kernel)})

    def __copy__(self) -> NativeKernel:
        return type(self)(copy.copy(self._kernel))

    def __repr__(self) -> str:
        function = self._function.fn
        return f"<culaunch.triton.NativeKernel {function.__module__}.{function.__qualname__}>"

    # ---- what the native half calls

    @untraced
    def _miss(
        self,
        values: dict[str, Any],
        options: dict[str, Any],
        description: list[tuple[Any, Any]],
        device: int,
    ) -> TritonVariant | None:
        assert self._driver is not None
        with compiling_for(self._driver, device):
            run = self._run_of_triton()
            kernel = compile_kernel(self._function, run, values, options, description)
        # None tells the native half that there is nothing to launch or to remember.
        if kernel is None:
            return None  # a hook of Triton's took the compilation over
        self._compiled.note(kernel, values.values())
        # After the compilation, which reads globals and adds to those that the kernel was compiled
        # with.
        self._watch_more()
        return self._compiled.variant(
            kernel, self._driver.name, lambda: self._load(kernel, description, device)
        )

    def _prepare(self) -> None:
        super()._prepare()
        self._watch()  # hooks may be there before the first call
        if self._stack.is_decorated:
            self._tell_choices(checks_choices())
        # What was changed since it was made.
        if not self._first_guards.hold():
            self._changed()

    @untraced
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call where a global changed or a hook is installed: rarely, or while profiling."""
        if self._successor is not None:
            return self._successor._call(grid, args, kwargs)
        if not self._are_as_before():
            successor = self._changed()
            if successor is not None:
                return successor(grid, args, kwargs)
        self._watch()
        # From here on the order is that of Triton's own launch.
        hooks = self._function.pre_run_hooks
        if self._stack.is_decorated and (hooks or changed_global(self._function) is not None):
            return self._call_decorators(grid, args, kwargs)
        if hooks or changed_global(self._function) is not None:
            self._specialize(args, kwargs)  # what is no call for this kernel raises
        for hook in hooks:
            hook(*args, **options_of_a_run(self._function, kwargs))
        check_globals(self._function)
        enter, leave = hooks_installed()
        if enter is None and leave is None:
            return self._call_plain(grid, args, kwargs)
        given = GivenGrid(grid)
        found = self._resolve(given.asked, args, kwargs)
        if not isinstance(found, tuple):
            return found  # the autotuner has just launched it
        variant, _, stream, values, _ = found
        metadata = launch_metadata(self._function, variant, stream, values, given.value)
        if enter is not None:
            enter(metadata)
        result = self._call_plain(given.value, args, kwargs)  # the grid is asked once
        if leave is not None:
            leave(metadata)
        return result

    def _call_decorators(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let the decorators' Python call the function, whose hooks are given what they chose."""
        assert self._driver is not None
        return self._tune(grid, args, kwargs, self._driver.current_device())[4]

    def _allocate(self, which: str, size: int, alignment: int, stream: int, device: int) -> object:
        allocator = users_allocator(which)
        if allocator is not None:
            return allocator(size, alignment, stream)
        return super()._allocate(which, size, alignment, stream, device)

    # ---- in the body of a function

    compiles = True

    def _for_body(self, body: RecordingBody) -> Dispatcher:
        super()._for_body(body)
        if self._successor is not None:
            return self._successor._for_body(body)
        check_globals(self._function)
        if not self._are_as_before() and self._changed() is not None:
            return made_native(self._kernel)._for_body(body)  # type: ignore[no-any-return]
        if self._function.pre_run_hooks:
            raise TypeError(
                f"{self.name} has a pre_run_hook, which is Python that runs at every launch: a "
                "function launches without Python"
            )
        return self

    def _note_reads(self, body: RecordingBody) -> None:
        for namespace, name, is_there, found in global_guards(self._function)[0]:
            if is_there:
                body.depends_on(namespace, name, found)

    # ---- helpers

    def _are_as_before(self) -> bool:
        """Whether what calls depend on is as it was; hooks may be there."""
        return self._guards_hold() or self._own_guards.hold()

    def _changed(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None:
        """Look again at the kernel: return what is called in this one's place, if anything is."""
        # The same decorators with other contents, such as a cache that has an entry more, need new
        # guards alone; other decorators need another dispatcher, whose key has other parameters.
        stack = _stack_of(self._kernel)
        if stack is not None and stack.fingerprint == self._stack.fingerprint:
            vars(self)["_stack"] = stack
            self._grid_guards.clear()
            self._compiled.forget()
            self._clear()
            return None
        return self._replace()

    def _replace(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
        """Give all further calls to one that is made of the kernel as it is now."""
        try:
            made = made_native(self._kernel)
        except Unknown:  # somebody gave the function a `run` of its own
            made = self._kernel
        if not isinstance(made, NativeKernel):
            return lambda grid, args, kwargs: made.run(*args, grid=grid, warmup=False, **kwargs)
        vars(self)["_successor"] = made
        self._stop()
        return made._call

    def _stop(self) -> None:
        """Let every further call come to ``_guarded``."""
        # A guard that never holds: a list of hooks that has one.
        self._set_guards((), ([None],), (), ())

    def _run_of_triton(self) -> Callable[..., Any]:
        """Return what compiles the function."""
        return self._function.run  # type: ignore[no-any-return]

    def _load(self, kernel: Any, description: list[tuple[Any, Any]], device: int) -> TritonVariant:
        assert self._driver is not None
        return load_compiled(self._driver, self._function, kernel, description, device)

    def _watch_more(self) -> None:
        # Where something changed meanwhile, the guards stay: they tell the next call.
        if self._are_as_before():
            self._watch()

    def _watch(self) -> None:
        """Guard what calls depend on, as it is now."""
        guards = vars(self)["_own_guards"] = self._guards()
        entries = (*guards.entries, *guards.quick, *self._more_entries())
        self._set_guards(entries, tuple(guards.hooks), tuple(guards.lists), tuple(guards.cells))

    def _guards(self) -> Guards:
        """Return what must be as it is for a call to need no Python."""
        guards = self._stack.guards()
        entries, lists = quiet_guards()
        hooks = self._function.pre_run_hooks
        guards.entries += entries
        guards.hooks += [*lists, hooks]
        found, never = global_guards(self._function)
        guards.entries += found + self._compiled.guards
        guards.quick += never + self._compiled.names
        guards.exact += self._compiled.kept
        for name in self._WATCHED:
            guards.attribute(self._function, name)
        guards.entries += self._grid_guards
        return guards

    def _more_entries(self) -> Iterable[Guard]:
        """Return what a call needs besides, and is not of the kernel."""
        return ()


def made_native(kernel: Any) -> Any:
    """Return the native form of a kernel of Triton, with its decorators or without.

    Raises
    ------
    Unknown
        If a JIT function cannot be made native.
    """
    try:
        return NativeKernel(kernel)
    except Unknown:
        if isinstance(kernel, triton_module("runtime.jit").JITFunction):
            raise
        # This decorator is Python that runs at every call; what it chooses goes on natively.
        return called_layer(kernel, made_native)


def checks_choices() -> bool:
    """Whether about half of the calls are compared with what heuristics and grids say again."""
    return os.environ.get("CULAUNCH_TRITON_CHECK", "") not in ("", "0")


def _stack_of(kernel: Any) -> Stack | None:
    try:
        return Stack(kernel)
    except (Unknown, TypeError):
        return None


in_regions(NativeKernel, "break", "Triton kernel")
in_regions(TritonLauncher, "break", "Triton kernel")

if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[DispatcherMethods] = NativeKernel
