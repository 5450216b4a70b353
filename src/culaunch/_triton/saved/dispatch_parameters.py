"""The parameters of a saved kernel, in the form of the native dispatcher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from culaunch._triton.variants.constants import same_constant

if TYPE_CHECKING:
    from culaunch._triton.calls.parameters import TritonParameter
    from culaunch._triton.saved.set import SavedSet

# Element types that an argument does not show: a Python number has another type.
_FORCED = ("i8", "i16", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp64")


def dispatch_parameters(saved: SavedSet) -> list[TritonParameter]:
    """Return the parameters with the requirements of all variants.

    Parameters
    ----------
    saved : SavedSet

    Raises
    ------
    TypeError
        If variants declare types of one parameter that a call cannot tell apart.
    """
    computed = frozenset(one.name for one in saved.computed)
    own = []
    runtime = 0
    for one in saved.parameters:
        # The order of these cases matters: a computed argument also belongs to a heuristic, and a
        # heuristic's constant is a constant.
        if one.name in computed and one.is_constexpr:
            own.append(replace(one, is_optional=True, has_default=False))
            continue
        if one.is_heuristic and one.is_constexpr:
            own.append(replace(one, is_optional=False, has_default=False))
            continue
        if one.is_constexpr:
            # A default that no variant was compiled with must not apply if a call omits the
            # constant.
            is_kept = one.has_default and any(
                same_constant(variant.constants[one.name], one.default)
                for variant in saved.variants
                if one.name in variant.constants
            )
            own.append(replace(one, is_optional=True, has_default=is_kept))
            continue
        kinds = {variant.types[runtime] for variant in saved.variants} - {"constexpr"}
        runtime += 1
        if one.is_heuristic:
            one = replace(one, has_default=False, is_optional=one.name in computed)  # noqa: PLW2901
        special = kinds.intersection(_FORCED)
        if special and len(kinds) > 1 and not one.annotation:
            declared = ", ".join(sorted(map(str, kinds)))
            raise TypeError(
                f"the variants of {saved.name} declare {one.name} as {declared}: a call cannot "
                "tell these apart. Give it one type"
            )
        own.append(
            replace(
                one,
                annotation=one.annotation or next(iter(special), ""),
                is_set_to_zero=one.name in saved.zeroes,
            )
        )
    return own
