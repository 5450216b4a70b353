"""C++ helpers of generated kernels: a source contains only the pieces that it uses.

A piece is a file in ``helpers`` with the name of its definition. Its text goes into kernels, and
with it into the keys of the cache of images. A change there compiles every kernel that uses it
again.
"""

from __future__ import annotations

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

_NEEDS = {name: re.compile(rf"(?<![\w:]){name}\b") for name in _IN_ORDER}
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
    open_ends = [code]
    # Search a helper's text for the helpers that it calls, until nothing new is found.
    while open_ends:
        text = open_ends.pop()
        for name, pattern in _NEEDS.items():
            if name not in wanted and (
                pattern.search(text) or any(k in text and v == name for k, v in _ALSO.items())
            ):
                # The forms that keep a NaN's sign cost instructions, so only kernels that read a
                # sign use them.
                folder = "helpers/with_signs" if signs and name in _WITH_SIGNS else "helpers"
                wanted[name] = data_text(__name__, f"{folder}/{name}.cuh")
                open_ends.append(wanted[name])
    return "\n".join(wanted[name] for name in _IN_ORDER if name in wanted)
