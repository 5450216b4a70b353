"""A new specialization of a kernel: compiled by Triton, loaded by culaunch."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import FunctionAttribute
from culaunch._image import Image
from culaunch._launch.private_members import kernel_attribute
from culaunch._triton.calls.object_kinds import TensorStandIn, type_in_language, type_name
from culaunch._triton.tensor_descriptor import TensorDescriptor
from culaunch._triton.upstream.compiler_digest import known_compiler
from culaunch._triton.upstream.target import triton_module
from culaunch._triton.upstream.warned import warnings_named
from culaunch._triton.variants.launch_facts import LaunchFacts
from culaunch._triton.variants.load_variant import load_variant, resources_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._core import Driver, TritonVariant

# An attribute of CompiledKernel, the driver's attribute, and its unit in bytes.
_FOUND_OUT = {
    "n_regs": (FunctionAttribute.NUM_REGS, 1),
    "n_spills": (FunctionAttribute.LOCAL_SIZE_BYTES, 4),
    "n_max_threads": (FunctionAttribute.MAX_THREADS_PER_BLOCK, 1),
}


def compile_kernel(
    function: Any,
    run: Callable[..., Any],
    values: dict[str, Any],
    options: dict[str, Any],
    description: list[tuple[Any, Any]],
) -> Any:
    """Let Triton compile a JIT function, with its caches and hooks, and launch nothing.

    Parameters
    ----------
    function : JITFunction
    run : callable
        Its ``run``.
    values, options : dict
        Of the call, by name.
    description : list of (type, key)
        Triton's description of the arguments, by parameter.

    Returns
    -------
    CompiledKernel or None
        None if a Triton hook took over the compilation.
    """
    hooks = function.pre_run_hooks
    none: list[Any] = []
    if hooks:  # they ran before, for the call itself
        function.pre_run_hooks = none
    forget_keys(function)
    # Do this after forgetting the keys. Otherwise a stand-in's key would be cached for the real
    # array.
    known = _known_to_triton(function, values, description)
    try:
        with warnings_named(function.__name__), known_compiler(), _told_as_a_launch(function):
            kernel = run(grid=None, warmup=True, **known, **options)
    finally:
        if function.pre_run_hooks is none:
            function.pre_run_hooks = hooks
    # Triton may compile in the background.
    return kernel.result() if hasattr(kernel, "result") else kernel


@contextlib.contextmanager
def _told_as_a_launch(function: Any) -> Iterator[None]:
    """Tell Triton's compilation hooks, if any, that this is not a warm-up."""
    runtime = triton_module("knobs").runtime
    hooks = ("jit_cache_hook", "jit_post_compile_hook")
    if all(getattr(runtime, name, None) is None for name in hooks):
        yield
        return
    own = vars(function)
    before = {name: value for name, value in own.items() if name == "_call_hook"}
    call = function._call_hook  # noqa: SLF001 - Triton's own place for it
    # The last argument says whether it is a warm-up.
    own["_call_hook"] = lambda *args: call(*args[:-1], False)
    try:
        yield
    finally:
        own.pop("_call_hook", None)
        own.update(before)


def forget_keys(function: Any) -> None:
    """Make Triton recompute its keys of a JIT function.

    From 3.6 on, it caches them by equal arguments, and True, 1 and 1.0 are equal. The keys
    themselves distinguish them.
    """
    for kept in function.device_caches.values():
        if len(kept) > 1 and isinstance(kept[1], dict):
            kept[1].clear()


def load_compiled(
    driver: Driver, function: Any, kernel: Any, description: list[tuple[Any, Any]], device: int
) -> TritonVariant:
    """Load a compiled kernel as Triton's own launch would, with its hooks and checks.

    Raises
    ------
    triton.runtime.errors.OutOfResources
        If the device has less than the kernel needs.
    """
    facts = LaunchFacts.from_metadata(kernel.metadata)
    parameters = zip(function.params, description, strict=True)
    types = [kind for parameter, (kind, _) in parameters if not parameter.is_constexpr]
    # The emulated device runs PTX. Other devices load the same image as Triton's own launch.
    data = kernel.asm["ptx"] if driver.name == "emulator" else kernel.asm["cubin"]
    if isinstance(data, str):
        data = data.encode()
    runtime = triton_module("knobs").runtime
    before = getattr(runtime, "kernel_load_start_hook", None)
    after = getattr(runtime, "kernel_load_end_hook", None)
    group = getattr(kernel, "metadata_group", None)  # not before Triton 3.5
    if before is not None:
        before(None, None, kernel.name, group, kernel.hash)
    ttir = str(kernel.asm.get("ttir", ""))
    variant = load_variant(driver, Image(data), facts, types, {}, kernel, ttir)
    missing = resources_missing(driver, variant, facts, device)
    if missing is not None:
        # The autotuner skips configurations that raise this.
        raise triton_module("runtime.errors").OutOfResources(*missing)
    # Triton's own launch adds these attributes for code that inspects the result of a call.
    for name, (attribute, unit) in _FOUND_OUT.items():
        if not hasattr(kernel, name):
            setattr(kernel, name, kernel_attribute(variant.kernel, attribute, device) // unit)
    if after is not None:
        handle = variant.kernel.handle
        after(handle, handle, kernel.name, group, kernel.hash)
    return variant


def _known_to_triton(
    function: Any, values: dict[str, Any], description: list[tuple[Any, Any]]
) -> dict[str, Any]:
    """Replace arrays that are not PyTorch's with stand-ins."""
    known = dict(values)
    for parameter, (kind, key) in zip(function.params, description, strict=True):
        value = values.get(parameter.name)
        stand_in = _known_value(value, kind, key)
        if stand_in is not value:
            known[parameter.name] = stand_in
    return known


def _known_value(value: Any, kind: Any, key: Any) -> Any:
    """Return the form of a value that Triton's compiler knows; the value itself if it is known."""
    if isinstance(kind, tuple) and isinstance(value, tuple):
        items = [_known_value(*one) for one in zip(value, kind, key, strict=True)]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, TensorDescriptor):
        return _known_descriptor(value)
    if not str(kind).startswith("*") or hasattr(value, "data_ptr") or value is None:
        return value
    if isinstance(value, int):
        return value  # an address for a parameter that is declared a pointer
    return _stand_in(kind.lstrip("*k"), divisible=key == "D")


def _known_descriptor(given: TensorDescriptor) -> Any:
    """Return Triton's own descriptor for a culaunch descriptor."""
    made = object.__new__(triton_module("tools.tensor_descriptor").TensorDescriptor)
    vars(made).update(vars(given))
    if not hasattr(given.base, "data_ptr"):
        made.base = _stand_in(type_name(given.base.dtype), divisible=True)
    return made


def _stand_in(name: str, *, divisible: bool) -> TensorStandIn:
    return TensorStandIn(type_in_language(name), divisible=divisible)
