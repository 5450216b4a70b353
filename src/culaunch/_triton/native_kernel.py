"""A Triton kernel whose calls bypass Triton's Python code."""

# ruff: noqa: SLF001 - of other native kernels: own names begin with an underscore, as the others
# are those of Triton's object

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._base.values import spell
from culaunch._core import TritonLauncher
from culaunch._launch.launches.compiled_regions import in_regions
from culaunch._triton.calls.parameters import parameters_of
from culaunch._triton.decorators.called_layer import called_layer
from culaunch._triton.decorators.layers import triton_kinds
from culaunch._triton.decorators.stack import Stack
from culaunch._triton.live.compiled_kernels import CompiledKernels
from culaunch._triton.live.just_in_time import compile_kernel, forget_keys, load_compiled
from culaunch._triton.live.used_globals import global_guards
from culaunch._triton.live.watching_dispatch import WatchingDispatcher
from culaunch._triton.reads.purity import Unknown
from culaunch._triton.upstream.allocators import users_allocator
from culaunch._triton.upstream.native_half import ATTRIBUTE
from culaunch._triton.upstream.target import compiling_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from culaunch._core import DispatcherMethods, TritonVariant
    from culaunch._launch.launches.recording import RecordingBody
    from culaunch._triton.calls.dispatcher import Dispatcher


class NativeKernel(WatchingDispatcher):
    """A Triton kernel with native launches; :func:`culaunch.triton.native` makes one.

    It has the other attributes of the Triton object, too (``arg_names``, ``cache``, ``configs``,
    ...). Setting one sets it on the Triton object, and the next call uses the new value.

    Parameters
    ----------
    kernel : JITFunction, Autotuner or Heuristics

    Raises
    ------
    TypeError
        If it is not a Triton kernel.

    Examples
    --------
    >>> from culaunch import triton
    >>> from kernels import scale
    >>> isinstance(triton.native(scale), triton.NativeKernel)
    True
    """

    # The attributes of a JIT function that Triton reads when it is created.
    _FIXED = frozenset(
        {"annotations", "arg_names", "constexprs", "do_not_specialize",
         "do_not_specialize_on_alignment", "name", "params", "signature"}
    )  # fmt: skip

    def __new__(cls, kernel: Any) -> Self:
        """Make a native kernel, with or without the kernel's decorators."""
        if not isinstance(kernel, triton_kinds()):
            raise TypeError(f"kernel must be a Triton kernel (got {spell(kernel)})")
        stack = Stack(kernel)
        function = stack.function
        # Decorators, including other classes, may set arguments that a call omits. Otherwise they
        # report the missing ones.
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
            _own_guards=stack.guards(),
            _grid_guards=[],
            # Both halves share one table: later calls use the images that the inner one loaded
            # while decorators decided.
            _compiled=CompiledKernels(function) if inner is None else inner._compiled,
        )
        for name in ("__doc__", "__name__", "__qualname__", "__module__", "__globals__"):
            if hasattr(kernel, name):
                vars(self)[name] = getattr(kernel, name)
        return self

    # ---- the interface of Triton's objects

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch, or only compile, as Triton's objects call each other.

        Parameters
        ----------
        *args, **kwargs
            The arguments and options of a launch.
        grid : tuple or callable
            The grid.
        warmup : bool, optional
            Whether to compile without a launch.

        Returns
        -------
        object
            The compiled kernel.
        """
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        return self._call(grid, args, kwargs)

    @untraced
    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile for these arguments, or types of arguments, without a launch.

        Parameters
        ----------
        *args, **kwargs
            The arguments and options of a launch; element types can stand for arrays.
        grid : tuple or callable
            The grid.

        Returns
        -------
        object
            The compiled kernel.
        """
        if self._driver is None:
            self._prepare()
        assert self._driver is not None
        with compiling_for(self._driver, self._driver.current_device()):
            forget_keys(self._function)
            return self._kernel.warmup(*args, grid=grid, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refuse, like Triton, because a launch needs a grid."""
        raise RuntimeError(
            f"{self.name} needs a grid: call {self.name}[grid](...). Kernels that call it need "
            "Triton's own object, without native()"
        )

    def __getattr__(self, name: str) -> Any:
        # Names with two underscores, which Python looks up, belong to this object. So do names of
        # the native half.
        kernel = vars(self).get("_kernel")
        if kernel is None or name.startswith("__") or name == ATTRIBUTE:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(kernel, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or (name in self._FIXED and not self._stack.is_decorated):
            raise AttributeError(
                f"{name!r} of a native kernel cannot be set: set it on Triton's object, and call "
                "native() on it again"
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

    # ---- called by the native half

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
        # None tells the native half to launch nothing and to cache nothing.
        if kernel is None:
            return None  # a Triton hook took over the compilation
        self._compiled.note(kernel, values.values())
        # After the compilation, which reads further globals into the kernel's record.
        self._watch_more()
        return self._compiled.variant(
            kernel, self._driver.name, lambda: self._load(kernel, description, device)
        )

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
        if not self._are_as_before() and self._changed() is not None:
            return made_native(self._kernel)._for_body(body)  # type: ignore[no-any-return]
        if self._function.pre_run_hooks:
            raise TypeError(
                f"{self.name} has a pre_run_hook, which runs Python at every launch, but a "
                "function launches without Python"
            )
        return self

    def _note_reads(self, body: RecordingBody) -> None:
        for namespace, name, is_there, found in global_guards(self._function)[0]:
            if is_there:
                body.depends_on(namespace, name, found)

    # ---- helpers

    def _replace(self) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
        """Route all later calls to a new object for the kernel's present state."""
        try:
            made = made_native(self._kernel)
        except Unknown:  # the function has a `run` of its own
            made = self._kernel
        if not isinstance(made, NativeKernel):
            return lambda grid, args, kwargs: made.run(*args, grid=grid, warmup=False, **kwargs)
        vars(self)["_successor"] = made
        self._stop()
        return made._call

    def _run_of_triton(self) -> Callable[..., Any]:
        """Return the callable that compiles the function."""
        return self._function.run  # type: ignore[no-any-return]

    def _load(self, kernel: Any, description: list[tuple[Any, Any]], device: int) -> TritonVariant:
        assert self._driver is not None
        return load_compiled(self._driver, self._function, kernel, description, device)


def made_native(kernel: Any) -> Any:
    """Return the native form of a Triton kernel, with or without its decorators.

    Raise Unknown if a JIT function cannot be made native.
    """
    try:
        return NativeKernel(kernel)
    except Unknown:
        if isinstance(kernel, triton_kinds().function):
            raise
        # This decorator runs Python at every call. Its choice is launched natively.
        return called_layer(kernel, made_native)


in_regions(NativeKernel, "break", "Triton kernel")
in_regions(TritonLauncher, "break", "Triton kernel")

if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[DispatcherMethods] = NativeKernel
