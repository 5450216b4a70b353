"""``native``: a Triton kernel whose calls do not go through Triton's Python."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._base.values import spell
from culaunch._triton.autotuner import TunedCache, native_tuner, split_config
from culaunch._triton.dispatcher import Dispatcher
from culaunch._triton.hooks import hooks_installed, load_hooks, quiet_guards, users_allocator
from culaunch._triton.launch_facts import LaunchFacts
from culaunch._triton.load_variant import load_variant, resources_missing
from culaunch._triton.object_kinds import TensorStandIn
from culaunch._triton.parameters import parameters_of
from culaunch._triton.target import (
    compiling_for,
    stand_in_where_triton_has_no_driver,
    triton_module,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from culaunch._core import DispatcherMethods, TritonVariant


# A CompiledKernel's attribute, the driver's CU_FUNC_ATTRIBUTE, and its unit in bytes.
_FOUND_OUT = {"n_regs": (4, 1), "n_spills": (3, 4), "n_max_threads": (0, 1)}


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
    stand_in_where_triton_has_no_driver()
    if isinstance(kernel, function_type):
        return NativeKernel(kernel)
    if isinstance(kernel, autotuner.Autotuner):
        if isinstance(kernel.fn, function_type) and is_plain(kernel):
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
    there too; setting it sets it on the Triton object, and the next call obeys.
    """

    # Read when the kernel was made native, or worked out from what was.
    _FIXED = frozenset(
        {"annotations", "arg_names", "best_config", "do_not_specialize",
         "do_not_specialize_on_alignment", "fn", "keys", "name", "params", "signature"}
    )  # fmt: skip

    fn: Any

    def __new__(cls, function: Any, tuner: Any = None) -> Self:
        """Make one of a JIT function, and of the autotuner above it."""
        if not isinstance(function, triton_module("runtime.jit").JITFunction):
            raise TypeError(f"function must be a @triton.jit function (got {spell(function)})")
        autotuner = triton_module("runtime.autotuner").Autotuner
        if tuner is not None and not isinstance(tuner, autotuner):
            raise TypeError(f"tuner must be an autotuner of Triton (got {spell(tuner)})")
        tuned = frozenset[str]()
        key = None
        if tuner is not None:
            tuned = _chosen_by(tuner.configs)
            # With one configuration there is nothing to choose by.
            names = tuner.keys if len(tuner.configs) > 1 else ()
            key = [function.arg_names.index(name) for name in names if name in function.arg_names]
        self = super().__new__(cls, function.__name__, parameters_of(function, tuned), key)
        inner = None if tuner is None else NativeKernel(function)
        vars(self).update(
            fn=function,
            _tuner=tuner,
            _chosen=tuned,
            _has_key=bool(key),
            _configs=None if tuner is None else tuner.configs,
            _cache=None if tuner is None else TunedCache.of(tuner, self),
            _inner=inner,
            _loaded={} if inner is None else inner._loaded,  # noqa: SLF001
            __doc__=function.__doc__,
        )
        return self

    _tuner: Any
    # What native code relies on of the autotuner.
    _chosen: frozenset[str]
    _has_key: bool
    _configs: Any
    _cache: Any
    _inner: NativeKernel | None
    # By the identity of Triton's kernel, which is kept alive by being there.
    _loaded: dict[tuple[int, str], tuple[Any, TritonVariant]]

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
            self._forget_keys()
            return self._triton_object.warmup(*args, grid=grid, **kwargs)

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
        return getattr(self._triton_object, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or name in self._FIXED:
            raise AttributeError(
                f"{name!r} of a native kernel cannot be set: set it on Triton's object, and call "
                "native() on that again"
            )
        if name == "configs":
            self._check_configs(value)
        setattr(self._triton_object, name, value)
        self._follow_tuner()
        self._clear()

    def __repr__(self) -> str:
        return f"<culaunch.triton.NativeKernel {self.fn.__module__}.{self.fn.__qualname__}>"

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
            kernel = self._compile(self._known_to_triton(values, description), options)
        if kernel is None:
            return None  # a hook of Triton's took the compilation over
        self._watch()
        key = (id(kernel), self._driver.name)
        known = self._loaded.get(key)
        if known is None:
            known = self._loaded[key] = (kernel, self._load(kernel, description, device))
        return known[1]

    @untraced
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call where a global changed or a hook is installed: rarely, or while profiling."""
        self._check_globals()
        self._follow_tuner()
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
        result = self._call_plain(found[-1], args, kwargs)  # the grid is asked once
        if leave is not None:
            leave(metadata)
        return result

    @untraced
    def _tune(
        self,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        device: int,
    ) -> tuple[dict[str, Any], dict[str, Any], Any, bool, Any]:
        """Let the autotuner choose and launch; say what it chose."""
        assert self._driver is not None
        tuner = native_tuner(self._tuner, self._inner)
        if self._driver.name == "cuda":
            result = tuner.run(*args, grid=grid, warmup=False, **kwargs)
        else:  # an autotuner may ask Triton for its device
            with compiling_for(self._driver, device):
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

    @property
    def _triton_object(self) -> Any:
        return self.fn if self._tuner is None else self._tuner

    def _check_configs(self, configs: Sequence[Any]) -> None:
        """Refuse configurations that native code was not made for."""
        others = _chosen_by(configs) - self._chosen
        if others:
            what = f"set {', '.join(sorted(others))}, which those at native() did not"
        elif len(configs) > 1 and self._tuner.keys and not self._has_key:
            what = "are more than one, unlike at native()"
        else:
            return
        raise ValueError(
            f"the new configurations of {self.name} {what}: call native() on the autotuner again"
        )

    def _follow_tuner(self) -> None:
        """Notice that the autotuner has other configurations, or another cache."""
        tuner = self._tuner
        if tuner is None or (tuner.configs is self._configs and tuner.cache is self._cache):
            return
        self._check_configs(tuner.configs)
        vars(self).update(_configs=tuner.configs, _cache=TunedCache.of(tuner, self))
        self._clear()

    def _forget_keys(self) -> None:
        """Make Triton work its keys out again.

        From 3.6 on it keeps them by arguments that are equal, though True, 1 and 1.0 are. The keys
        themselves tell them apart.
        """
        for kept in self.fn.device_caches.values():
            if len(kept) > 1 and isinstance(kept[1], dict):
                kept[1].clear()

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
        none: list[Any] = []
        if hooks:  # they ran before, for the call itself
            self.fn.pre_run_hooks = none
        self._forget_keys()
        try:
            kernel = self.fn.run(grid=None, warmup=True, **values, **options)
        finally:
            if self.fn.pre_run_hooks is none:
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
        before, after = load_hooks()
        group = getattr(kernel, "metadata_group", None)  # not before Triton 3.5
        if before is not None:
            before(None, None, kernel.name, group, kernel.hash)
        variant = load_variant(self._driver, data, facts, types, {}, kernel)
        missing = resources_missing(self._driver, variant, facts, device)
        if missing is not None:
            # The autotuner passes such a configuration over.
            raise triton_module("runtime.errors").OutOfResources(*missing)
        # What Triton's own launch finds out, for those who look at what a call returned.
        for name, (attribute, unit) in _FOUND_OUT.items():
            if not hasattr(kernel, name):
                setattr(kernel, name, variant.kernel._attribute(attribute, device) // unit)  # noqa: SLF001
        if after is not None:
            handle = variant.kernel.handle
            after(handle, handle, kernel.name, group, kernel.hash)
        return variant

    def _watch(self) -> None:
        _, lists = quiet_guards()
        self._set_guards(tuple(self._guards()), (*lists, self.fn.pre_run_hooks))

    def _guards(self) -> list[tuple[dict[str, Any], str, bool, object]]:
        """Return the entries of dicts that must be as they are for a call to need no Python."""
        guards, _ = quiet_guards()
        for (name, _), (_, namespace) in self.fn.used_global_vals.items():
            guards.append((namespace, name, name in namespace, namespace.get(name)))
        guards.append((vars(self.fn), "pre_run_hooks", True, self.fn.pre_run_hooks))
        if self._tuner is not None:
            guards.append((vars(self._tuner), "configs", True, self._configs))
            guards.append((vars(self._tuner), "cache", True, self._cache))
        return guards

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


def _chosen_by(configs: Sequence[Any]) -> frozenset[str]:
    """Return the arguments that configurations set."""
    return frozenset(name for config in configs for name in config.kwargs)


def is_plain(tuner: Any) -> bool:
    """Whether the choices fill constants and options alone, which native code can do."""
    names = {one.name: one.is_constexpr for one in tuner.fn.params}
    return all(names.get(name, True) for config in tuner.configs for name in config.kwargs)


def _interpreted(kernel: Any) -> bool:
    while hasattr(kernel, "fn") and type(kernel).__name__ != "InterpretedFunction":
        kernel = kernel.fn
    return type(kernel).__name__ == "InterpretedFunction"


if TYPE_CHECKING:  # the extension calls methods of it
    _methods: type[DispatcherMethods] = NativeKernel
