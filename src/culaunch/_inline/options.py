"""The options of a build, under culaunch's names and the names of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list
from culaunch._base.similar import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

# Their names in tvm_ffi.cpp.load_inline and in PyTorch's load_inline.
_OTHER_NAMES = {
    "extra_cflags": "flags",
    "extra_cuda_cflags": "cuda_flags",
    "extra_ldflags": "link_flags",
    "extra_include_paths": "include_dirs",
}
_RENAMED = {"build_dir": "build_directory"}
# The other options of load_inline and build_inline.
_ALWAYS = ("arch", "build_directory", "embed_cubin", "functions")
_NOT_NEEDED = ("verbose", "with_cuda", "keep_module_alive", "backend")


def with_extra(
    verb: str, options: Mapping[str, Any], extra: Mapping[str, object]
) -> dict[str, Any]:
    """Return the options, followed by options under another name.

    Raises
    ------
    TypeError
        For an argument that neither culaunch nor the others have.
    """
    merged = dict(options)
    for name, value in extra.items():
        own = _OTHER_NAMES.get(name)
        if own is None:
            hint = f": use {_RENAMED[name]}=" if name in _RENAMED else ""
            hint = "; leave it out" if name in _NOT_NEEDED else hint
            hint = hint or did_you_mean(name, (*options, *_ALWAYS))
            raise TypeError(f"{verb} has no argument {name}{hint}")
        if value is not None:
            merged[own] = [
                *checked_list(own, merged[own], "str"),
                *checked_list(name, value, "str"),
            ]
    return merged
