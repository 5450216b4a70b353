"""The parameters of a kernel's Python function, as the native dispatcher takes them."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from culaunch._core import NUMBERS

_FLAGS = NUMBERS["TritonParameterFlag"]


@dataclass(frozen=True)
class TritonParameter:
    """One parameter."""

    name: str
    annotation: str = ""
    """The type that it is forced to, such as ``"i64"``; "" if its values decide."""
    is_constexpr: bool = False
    is_const: bool = False
    """A pointer to memory that is only read."""
    # Whether its values, and their divisibility by 16, make separate variants.
    specialize: bool = True
    align: bool = True
    is_optional: bool = False
    """It may be left out although it has no default."""
    has_default: bool = False
    default: object = None
    is_heuristic: bool = False
    """Its value came from ``@triton.heuristics``: a call without Triton has to give it."""
    is_set_to_zero: bool = False
    """An array, before each launch."""

    @property
    def packed(self) -> tuple[str, object, int, str]:
        """The form that the native dispatcher accepts."""
        flags = (
            _FLAGS["IS_CONSTEXPR"] * self.is_constexpr
            | _FLAGS["IS_CONST"] * self.is_const
            | _FLAGS["SPECIALIZE"] * self.specialize
            | _FLAGS["ALIGN"] * self.align
            | _FLAGS["OPTIONAL"] * self.is_optional
            | _FLAGS["HAS_DEFAULT"] * self.has_default
            | _FLAGS["SET_TO_ZERO"] * self.is_set_to_zero
        )
        annotation = "" if self.is_constexpr else self.annotation
        return (self.name, self.default, flags, annotation)


def parameters_of(function: Any, optional: frozenset[str]) -> tuple[TritonParameter, ...]:
    """Read the parameters of a JIT function. A call may omit those in `optional`."""
    return tuple(
        TritonParameter(
            name=one.name,
            annotation=one.annotation_type,
            is_constexpr=one.is_constexpr,
            is_const=one.is_const,
            specialize=not one.do_not_specialize,
            align=not one.do_not_specialize_on_alignment,
            is_optional=one.name in optional,
            # Do not use one.has_default: it is wrong if the default is a constexpr.
            has_default=one.default is not Parameter.empty,
            default=None if one.default is Parameter.empty else one.default,
        )
        for one in function.params
    )
