"""C++ helpers of generated kernels: a source contains only the pieces that it uses.

A piece is a file in ``helpers`` with the name of its definition. Its text goes into kernels, and
with it into the keys of the cache of images. A change there compiles every kernel that uses it
again.
"""

from __future__ import annotations

import functools
import re

from culaunch._base.data_files import data_text

# A helper comes after the helpers that it uses.
_IN_ORDER = (
    "__half",
    "__nv_bfloat16",
    "complex",
    "to_std",
    "scaled",
    "complex_expm1",
    "complex_log1p",
    "complex_power",
    "complex_sign",
    "load_half",
    "store_half",
    "load_bfloat16",
    "store_bfloat16",
    "to_odd",
    "half_tanh",
    "half_divide",
    "half_sqrt",
    "next_half",
    "next_bfloat16",
    "left_shift",
    "right_shift",
    "maximum",
    "minimum",
    "floor_divide",
    "modulo",
    "integer_power",
    "inverse_root",
    "log_add_exp",
    "Indexer",
    "RawHalf",
    "RawBfloat16",
    "Division",
    "Reciprocal",
    "across",
    "across_cluster",
    "copy_async",
    "load_again",
)
# These have a second form in ``helpers/with_signs``, for kernels that read a NaN's sign.
# Conversions to and from half precision make all NaNs equal.
_WITH_SIGNS = ("load_half", "store_half", "store_bfloat16")
_SIGNS = re.compile(r"\b(?:signbit|copysignf?)\b")

# Names that may be those of helpers: a qualified name is of another namespace.
_NAMES = re.compile(r"(?<![\w:])[A-Za-z_]\w*")
_ALSO = {
    "from_std": "to_std",
    "cuda::std": "to_std",
    "across_lanes": "across",
    "across_block": "across",
}


def pack() -> str:
    """Return the helper for every kernel: elements that are loaded and stored together."""
    return data_text(__name__, "helpers/pack.cuh")


def helpers_for(code: str) -> str:
    """Return the helpers that a piece of C++ calls, directly or indirectly, in order."""
    signs = bool(_SIGNS.search(code))
    wanted: dict[str, str] = {}
    open_ends = set(_called(code))
    # Follow the helpers that helpers call, until nothing new is found.
    while open_ends:
        name = open_ends.pop()
        wanted[name], called = _piece(name, signs and name in _WITH_SIGNS)
        open_ends |= called - wanted.keys()
    return "\n".join(wanted[name] for name in _IN_ORDER if name in wanted)


@functools.cache
def _piece(name: str, with_signs: bool) -> tuple[str, frozenset[str]]:
    """Return a helper's text, and the helpers that it calls."""
    # The forms that keep a NaN's sign cost instructions, so only kernels that read a sign use them.
    folder = "helpers/with_signs" if with_signs else "helpers"
    text = data_text(__name__, f"{folder}/{name}.cuh")
    return text, _called(text)


def _called(text: str) -> frozenset[str]:
    also = (name for part, name in _ALSO.items() if part in text)
    return frozenset(_NAMES.findall(text)).intersection(_IN_ORDER).union(also)
