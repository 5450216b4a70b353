"""Whether this Triton has what culaunch reads of it, which is more than Triton promises to keep."""

from __future__ import annotations

import functools
import inspect
import types
from typing import TYPE_CHECKING, Any

from culaunch._errors import MissingDependencyError
from culaunch._triton.launch_facts import NEWEST_KNOWN
from culaunch._triton.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where it is below `triton`, a class there or "", and the names. What only some versions have is
# asked for where it is used, and is not here.
_READ = (
    ("runtime.jit", "KernelInterface", ("__getitem__",)),
    ("runtime.jit", "JITFunction", (
        "fn", "run", "params", "arg_names", "debug", "launch_metadata", "pre_run_hooks",
        "device_caches", "used_global_vals", "hash", "_call_hook",
    )),
    ("runtime.jit", "KernelParam", (
        "name", "default", "annotation_type", "is_constexpr", "is_const", "do_not_specialize",
        "do_not_specialize_on_alignment",
    )),
    ("runtime.autotuner", "Autotuner", (
        "fn", "run", "arg_names", "configs", "cache", "keys", "nargs", "best_config", "do_bench",
        "_do_bench", "_bench",
    )),
    ("runtime.autotuner", "Heuristics", ("fn", "run", "arg_names", "values")),
    ("runtime.autotuner", "Config", ("kwargs", "pre_hook", "all_kwargs")),
    ("runtime.driver", "DriverConfig", ("active", "set_active")),
    ("runtime.errors", "OutOfResources", ()),
    ("runtime._allocation", "", ("_allocator",)),
    ("backends", "", ("backends",)),
    ("backends.compiler", "GPUTarget", ()),
    ("compiler.compiler", "LazyDict", ("add", "get")),
    ("compiler.compiler", "CompiledKernel", ("metadata", "asm", "name", "hash", "src")),
    ("knobs", "runtime_knobs", (
        "debug", "launch_enter_hook", "launch_exit_hook", "jit_cache_hook",
        "jit_post_compile_hook",
    )),
)  # fmt: skip


def check_supported() -> None:
    """Refuse a Triton in which a launch would fail over a name that is not there.

    Raises
    ------
    MissingDependencyError
        If Triton is not installed, or one that is too old, or too new, for this culaunch.
    """
    missing = _missing(triton_module())
    if missing:
        major, minor = NEWEST_KNOWN
        raise MissingDependencyError(
            f"this Triton, {triton_module().__version__}, has no {', '.join(missing)}, which "
            "launching its kernels natively reads. Install one that is known, "
            f"python -m pip install 'triton>=3.4,<{major}.{minor + 1}', or a newer culaunch; "
            "without it the kernels are launched by Triton, as ever"
        )


@functools.cache
def _missing(package: types.ModuleType) -> tuple[str, ...]:  # noqa: ARG001 - what it is kept by
    missing = []
    for place, kind, names in _READ:
        try:
            holder: Any = triton_module(place)
        except ImportError:
            missing.append(f"triton.{place}")
            continue
        whole = f"triton.{place}"
        if kind:
            whole += f".{kind}"
            holder = getattr(holder, kind, None)
        known = set(_names_of(holder)) if kind else vars(holder)
        missing += [whole] if holder is None else []
        missing += [f"{whole}.{name}" for name in names if holder and name not in known]
    return tuple(missing)


def _names_of(kind: Any) -> Iterator[str]:
    """Give the names that a class has, and those that its methods use: attributes of its objects.

    Not those alone that they set: somebody may have replaced the one that does.
    """
    for base in getattr(kind, "__mro__", ()):
        yield from vars(base)
        for one in vars(base).values():
            function = inspect.unwrap(one) if callable(one) else None
            if isinstance(function, types.FunctionType):
                yield from function.__code__.co_names
