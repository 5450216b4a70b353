"""``native``: a Triton kernel whose calls do not go through Triton's Python."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from culaunch._triton._dispatcher import Dispatcher
from culaunch._triton._facts import LaunchFacts
from culaunch._triton._hooks import hooks_installed, quiet_guards, users_allocator
from culaunch._triton._objects import TensorStandIn
from culaunch._triton._parameters import parameters_of
from culaunch._triton._target import compiling_for, triton_module
from culaunch._triton._tuning import native_tuner, split_config
from culaunch._triton._variant import load_variant, resources_missing

if TYPE_CHECKING:
    from typing_extensions import Self

    from culaunch._core import TritonVariant


def native(kernel: Any) -> Any:
    """Make the calls of a Triton kernel native: same call, same results.

    Parameters
    ----------
    kernel : triton.runtime.JITFunction, Autotuner or Heuristics
        What ``@triton.jit`` makes, under ``@triton.autotune`` and ``@triton.heuristics`` or not.
        What ``TRITON_INTERPRET=1`` makes is given back as it is.

    Returns
    -------
    NativeKernel
        ``kernel[grid](*args, **kwargs)`` as before. A new specialisation is compiled by Triton and
        then loaded by culaunch; every further call is bound, specialised, looked up and launched
        by native code.

    Raises
    ------
    TypeError
        If it is not a Triton kernel.
    MissingDependencyError
        If Triton is not installed.
    """
    autotuner = triton_module("runtime.autotuner")
    function_type = triton_module("runtime.jit").JITFunction
    if isinstance(kernel, NativeKernel):
        return kernel
    if isinstance(kernel, function_type):
        return NativeKernel(kernel)
    if isinstance(kernel, autotuner.Autotuner):
        if isinstance(kernel.fn, function_type) and _is_plain(kernel):
            return NativeKernel(kernel.fn, kernel)
        if _interpreted(kernel):
            return kernel
        return native_tuner(kernel, native(kernel.fn))
    if isinstance(kernel, autotuner.Heuristics):
        if _interpreted(kernel):
            return kernel
        # The heuristics are Python that runs at every call; what they choose goes on natively.
        inner = copy.copy(kernel)
        inner.fn = native(kernel.fn)
        return inner
    if type(kernel).__name__ == "InterpretedFunction":
        return kernel
    raise TypeError(
        "native() takes what @triton.jit makes, with @triton.autotune and @triton.heuristics above "
        f"it or not (got {type(kernel).__module__}.{type(kernel).__qualname__})"
    )


class NativeKernel(Dispatcher):
    """A Triton kernel that is launched natively; :func:`native` makes one.

    Everything else that the Triton object has (``arg_names``, ``cache``, ``configs``, ...) is
    there too.
    """

    fn: Any

    def __new__(cls, function: Any, tuner: Any = None) -> Self:
        """Make one of a JIT function, and of the autotuner above it."""
        tuned = frozenset[str]()
        key = None
        if tuner is not None:
            tuned = frozenset(name for config in tuner.configs for name in config.kwargs)
            # With one configuration there is nothing to choose by.
            names = tuner.keys if len(tuner.configs) > 1 else ()
            key = [function.arg_names.index(name) for name in names if name in function.arg_names]
        self = super().__new__(cls, function.__name__, parameters_of(function, tuned), key)
        self.fn = function
        self._tuner = tuner
        self._inner = None if tuner is None else NativeKernel(function)
        self._loaded = {} if self._inner is None else self._inner._loaded  # noqa: SLF001
        self.__doc__ = function.__doc__
        return self

    _tuner: Any
    _inner: NativeKernel | None
    # By the identity of Triton's kernel, which is kept alive by being there.
    _loaded: dict[tuple[int, str], tuple[Any, TritonVariant]]

    # ---- what Triton's objects have

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch, or compile alone, as Triton's objects call each other."""
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        return self._call(grid, args, kwargs)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile for these arguments, or types of arguments, and launch nothing."""
        if self._driver is None:
            self._prepare()
        assert self._driver is not None
        target = self.fn if self._tuner is None else self._tuner
        with compiling_for(self._driver, self._driver.current_device()):
            return target.warmup(*args, grid=grid, **kwargs)

    @property
    def best_config(self) -> Any:
        """What the autotuner chose for the last call."""
        return self._last_config

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Refuse, as Triton does: a launch needs a grid."""
        raise RuntimeError(
            f"{self.name} is launched with a grid: {self.name}[grid](...). Kernels that call it "
            "need Triton's own object, without native()"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.fn if self._tuner is None else self._tuner, name)

    def __repr__(self) -> str:
        return f"<culaunch.triton.NativeKernel {self.fn.__module__}.{self.fn.__qualname__}>"

    # ---- what the native half calls

    def _miss(
        self,
        values: dict[str, Any],
        options: dict[str, Any],
        description: list[tuple[Any, Any]],
        device: int,
    ) -> TritonVariant | None:
        assert self._driver is not None
        with compiling_for(self._driver, device):
            kernel = self._compile(self._known_to_triton(values, description), options)
        if kernel is None:
            return None  # a hook of Triton's took the compilation over
        self._watch()
        key = (id(kernel), self._driver.name)
        known = self._loaded.get(key)
        if known is None:
            known = self._loaded[key] = (kernel, self._load(kernel, description, device))
        return known[1]

    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call where a global changed or a hook is installed: rarely, or while profiling."""
        self._check_globals()
        self._watch()
        for hook in self.fn.pre_run_hooks:
            hook(*args, **kwargs)
        enter, leave = hooks_installed()
        if enter is None and leave is None:
            return self._call_plain(grid, args, kwargs)
        found = self._resolve(grid, args, kwargs)
        if not isinstance(found, tuple):
            return found  # the autotuner has just launched it
        metadata = self._launch_metadata(*found)
        if enter is not None:
            enter(metadata)
        result = self._call_plain(grid, args, kwargs)
        if leave is not None:
            leave(metadata)
        return result

    def _tune(
        self,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        device: int,  # noqa: ARG002
    ) -> tuple[dict[str, Any], dict[str, Any], Any, bool, Any]:
        """Let the autotuner choose and launch; say what it chose."""
        tuner = native_tuner(self._tuner, self._inner)
        result = tuner.run(*args, grid=grid, warmup=False, **kwargs)
        config = self._tuner.best_config = tuner.best_config
        constants, options = split_config(config, self._parameter_names)
        return constants, options, config, config.pre_hook is not None, result

    def _run_hook(self, config: Any, values: dict[str, Any]) -> None:
        config.pre_hook(values)

    def _allocate(self, which: str, size: int, alignment: int, stream: int, device: int) -> object:
        allocator = users_allocator(which)
        if allocator is not None:
            return allocator(size, alignment, stream)
        return super()._allocate(which, size, alignment, stream, device)

    # ---- helpers

    def _known_to_triton(
        self, values: dict[str, Any], description: list[tuple[Any, Any]]
    ) -> dict[str, Any]:
        """Put stand-ins for arrays of other libraries than PyTorch."""
        known = dict(values)
        for parameter, (kind, key) in zip(self.fn.params, description, strict=True):
            value = values.get(parameter.name)
            if str(kind).startswith("*") and not hasattr(value, "data_ptr") and value is not None:
                if isinstance(value, int):
                    continue  # an address, of a parameter that is declared a pointer
                name = kind.lstrip("*k")
                dtype = triton_module("language").dtype("int1" if name == "u1" else name)
                known[parameter.name] = TensorStandIn(dtype, divisible=key == "D")
        return known

    def _compile(self, values: dict[str, Any], options: dict[str, Any]) -> Any:
        hooks = self.fn.pre_run_hooks
        if hooks:  # they ran before, for the call itself
            self.fn.pre_run_hooks = []
        try:
            kernel = self.fn.run(grid=None, warmup=True, **values, **options)
        finally:
            self.fn.pre_run_hooks = hooks
        # Triton may compile in the background.
        return kernel.result() if hasattr(kernel, "result") else kernel

    def _load(self, kernel: Any, description: list[tuple[Any, Any]], device: int) -> TritonVariant:
        assert self._driver is not None
        facts = LaunchFacts.from_metadata(kernel.metadata)
        parameters = zip(self.fn.params, description, strict=True)
        types = [kind for parameter, (kind, _) in parameters if not parameter.is_constexpr]
        data = kernel.asm["ptx"] if self._driver.name == "emulator" else kernel.asm["cubin"]
        if isinstance(data, str):
            data = data.encode()
        variant = load_variant(self._driver, data, facts, types, {}, kernel)
        missing = resources_missing(self._driver, variant, facts, device)
        if missing is not None:
            # The autotuner passes such a configuration over.
            raise triton_module("runtime.errors").OutOfResources(*missing)
        return variant

    def _watch(self) -> None:
        guards, lists = quiet_guards()
        for (name, _), (_, namespace) in self.fn.used_global_vals.items():
            guards.append((namespace, name, name in namespace, namespace.get(name)))
        self._set_guards(tuple(guards), (*lists, self.fn.pre_run_hooks))

    def _check_globals(self) -> None:
        missing = object()
        for (name, _), (value, namespace) in self.fn.used_global_vals.items():
            found = namespace.get(name, missing)
            if found != value:
                raise RuntimeError(
                    f"Global variable {name} has changed since we compiled this kernel, from "
                    f"{value} to {found}"
                )

    def _launch_metadata(
        self, variant: TritonVariant, _: int, stream: int, values: dict[str, Any], grid: Any
    ) -> Any:
        """Make what Triton gives its launch hooks; "function" is the driver's CUkernel."""
        kernel = variant.result
        made = triton_module("compiler.compiler").LazyDict(
            {"name": kernel.name, "function": variant.kernel.handle, "stream": stream}
        )
        if self.fn.launch_metadata is not None:
            made.add(self.fn.launch_metadata, (grid, kernel.metadata, values))
        return made


def _is_plain(tuner: Any) -> bool:
    """Whether the choices fill constants and options alone, which native code can do."""
    names = {one.name: one.is_constexpr for one in tuner.fn.params}
    return all(names.get(name, True) for config in tuner.configs for name in config.kwargs)


def _interpreted(kernel: Any) -> bool:
    while hasattr(kernel, "fn") and type(kernel).__name__ != "InterpretedFunction":
        kernel = kernel.fn
    return type(kernel).__name__ == "InterpretedFunction"
