"""Whether this Triton has the private parts that culaunch reads."""

from __future__ import annotations

import functools
import linecache
import re
import sys
from typing import TYPE_CHECKING, Any

from culaunch._errors import MissingDependencyError
from culaunch._triton.upstream.target import triton_module
from culaunch._triton.upstream.versions import NEWEST_KNOWN

if TYPE_CHECKING:
    import types

# The module below `triton`, a class there or "", the members of either, and the attributes of the
# class's objects. Members that only some versions have are checked at their use instead.
_READ: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("runtime.jit", "KernelInterface", ("__getitem__",), ()),
    ("runtime.jit", "JITFunction", ("run",), (
        "fn", "params", "arg_names", "debug", "launch_metadata", "pre_run_hooks", "device_caches",
        "used_global_vals", "hash", "_call_hook",
    )),
    ("runtime.jit", "KernelParam", (), (
        "name", "default", "annotation_type", "is_constexpr", "is_const", "do_not_specialize",
        "do_not_specialize_on_alignment",
    )),
    ("runtime.autotuner", "Autotuner", ("run", "_bench"), (
        "fn", "arg_names", "configs", "cache", "keys", "nargs", "best_config", "do_bench",
        "_do_bench",
    )),
    ("runtime.autotuner", "Heuristics", ("run",), ("fn", "arg_names", "values")),
    ("runtime.autotuner", "Config", (), ("kwargs", "pre_hook", "all_kwargs")),
    ("runtime.driver", "DriverConfig", ("set_active",), ("active",)),
    ("runtime.errors", "OutOfResources", (), ()),
    ("runtime._allocation", "", ("_allocator",), ()),
    ("backends", "", ("backends",), ()),
    ("backends.compiler", "GPUTarget", (), ()),
    ("compiler.compiler", "LazyDict", ("add", "get"), ()),
    ("compiler.compiler", "CompiledKernel", (), ("metadata", "asm", "name", "hash", "src")),
    ("knobs", "runtime_knobs", (), (
        "debug", "launch_enter_hook", "launch_exit_hook", "jit_cache_hook",
        "jit_post_compile_hook",
    )),
)  # fmt: skip


def check_supported() -> None:
    """Refuse a Triton version in which a launch would fail because of a missing name.

    Raise MissingDependencyError if Triton is not installed, or one that is too old, or too new, for
    this culaunch.
    """
    missing = _missing(triton_module())
    if missing:
        major, minor = NEWEST_KNOWN
        raise MissingDependencyError(
            f"this Triton, {triton_module().__version__}, has no {', '.join(missing)}, which "
            "native launches need. Install a supported version with "
            f"python -m pip install 'triton>=3.4,<{major}.{minor + 1}', or a newer culaunch. "
            "Otherwise Triton keeps launching the kernels"
        )


@functools.cache
def _missing(package: types.ModuleType) -> tuple[str, ...]:  # noqa: ARG001 - the key of the cache
    missing = []
    for place, kind, members, attributes in _READ:
        whole = f"triton.{place}.{kind}".rstrip(".")
        try:
            module: Any = triton_module(place)
        except ImportError:
            missing.append(f"triton.{place}")
            continue
        holder = getattr(module, kind, None) if kind else module
        if holder is None:
            missing.append(whole)
            continue
        missing += [f"{whole}.{name}" for name in members if not _has(holder, name)]
        source = _source_of(holder) if attributes else ""
        missing += [
            f"{whole}.{name}" for name in attributes
            if source and re.search(rf"\b{name}\b", source) is None
        ]  # fmt: skip
    return tuple(missing)


def _has(holder: Any, name: str) -> bool:
    """Whether a module or a class has its own member, other than the interface of all kernels."""
    bases = [base for base in getattr(holder, "__mro__", (holder,)) if base is not object]
    interface = triton_module("runtime.jit").KernelInterface
    return any(name in vars(base) for base in bases if base is holder or base is not interface)


def _source_of(kind: type) -> str:
    """Return the source of a class and its bases with their surroundings; "" if there is none.

    The names in its methods would not be enough. Other libraries replace methods, especially
    `Autotuner.__init__`, and a replacement need not use the same names.
    """
    modules = {base.__module__ for base in kind.__mro__ if base is not object}
    files = [getattr(sys.modules.get(name), "__file__", None) or "" for name in modules]
    return "".join(line for file in files for line in linecache.getlines(file))
