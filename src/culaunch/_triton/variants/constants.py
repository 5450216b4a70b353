"""Constants of a saved kernel: in a manifest, read back, and compared with a call's."""

from __future__ import annotations

import collections
import functools
import math
from dataclasses import dataclass
from typing import Any

from culaunch._triton.calls.object_kinds import type_name
from culaunch._triton.variants.checks import check_element

_MOST_BITS = 10_000  # bits of a constant; Python reads at most 4,300 digits
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class SavedType:
    """An element type among the constants, without Triton."""

    name: str

    def __str__(self) -> str:
        return self.name


def encode(value: Any) -> Any:
    """Return a constant in JSON's types."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # the text of an enumeration's member, not its name
    if isinstance(value, int):
        if value.bit_length() > _MOST_BITS:
            raise ValueError(f"a constant of {value.bit_length()} bits cannot be saved")
        return int(value)
    if isinstance(value, float):
        number = float(value)
        # JSON has no infinities and no NaN.
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, (tuple, list)):
        items = [encode(item) for item in value]
        fields = getattr(value, "_fields", None)
        return items if fields is None else {"fields": list(fields), "values": items}
    if isinstance(value, SavedType) or type(value).__name__ == "dtype":
        return {"dtype": check_element(type_name(value))}
    if type(value).__name__ == "constexpr":
        return encode(value.value)
    raise TypeError(
        f"a constant of type {type(value).__qualname__} cannot be saved: use numbers, strings, "
        "None, element types and tuples of these"
    )


def normal_constant(value: Any) -> Any:
    """Return a constant in the form of a file, so a fresh set and a saved one are equal."""
    return decode(encode(value))


def decode(value: Any) -> Any:
    """Decode the result of :func:`encode`. An element type becomes :class:`SavedType`."""
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, dict):
        if value.keys() == {"float"} and value["float"] in ("inf", "-inf", "nan"):
            return float(value["float"])
        if value.keys() == {"dtype"}:
            return SavedType(check_element(value["dtype"]))
        if value.keys() == {"fields", "values"}:
            items = [decode(item) for item in checked(value["values"], list)]
            return make_named(checked(value["fields"], list), items)
        raise ValueError(f"{value!r:.80} is not a constant")
    return value


def read_settings(entry: Any) -> dict[str, Any]:
    """Read constants or options by name."""
    return {name: decode(value) for name, value in checked(entry, dict).items()}


def same_constant(saved: Any, given: Any) -> bool:
    """Whether a call's constant equals the one that a variant was compiled with."""
    if type(given).__name__ == "constexpr":
        given = given.value
    if isinstance(saved, SavedType):
        is_array = hasattr(given, "__dlpack__") or hasattr(given, "data_ptr")
        return not is_array and type_name(given) == saved.name
    if isinstance(saved, tuple):
        return (
            isinstance(given, (tuple, list))
            and len(saved) == len(given)
            and fields_fit(saved, given)
            and all(map(same_constant, saved, given))
        )
    if not isinstance(given, _PLAIN):
        # NumPy's numbers count as numbers, but an array is not a constant.
        kinds = {(one.__module__, one.__name__) for one in type(given).__mro__}
        if ("numpy", "generic") not in kinds:
            return False
        given = given.item()
        if not isinstance(given, _PLAIN):
            return False
    # In Python, True equals 1 and 1 equals 1.0, but their compiled kernels differ.
    if isinstance(saved, bool) != isinstance(given, bool):
        return False
    if isinstance(saved, float) != isinstance(given, float):
        return False
    if isinstance(saved, float) and isinstance(given, float):
        return repr(saved) == repr(float(given))  # NaN equals itself, and -0.0 is not 0.0
    return bool(saved == given)


def checked(value: Any, kind: type) -> Any:
    """Return a value of a manifest, which must be of one of JSON's types.

    Raise TypeError if it is of another type; a bool is no int.
    """
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is not a {kind.__name__}")
    return value


@functools.lru_cache(maxsize=256)
def named_tuple(fields: tuple[str, ...]) -> Any:
    """Return a type of named tuples. Triton accepts any type with the same fields."""
    return collections.namedtuple("named", fields)


def like_tuple(kind: Any, items: Any) -> Any:
    """Return items as a tuple with another tuple's fields, if it has any."""
    fields = getattr(kind, "_fields", None)
    return tuple(items) if fields is None else named_tuple(tuple(fields))(*items)


def fields_fit(saved: Any, given: Any) -> bool:
    """Whether a tuple has the same fields as the saved one, if that has any."""
    fields = getattr(saved, "_fields", None)
    return fields is None or fields == getattr(given, "_fields", None)


def make_named(fields: list[Any], items: list[Any]) -> tuple[Any, ...]:
    """Return items of a manifest as a tuple of named fields."""
    if len(fields) != len(items):
        raise ValueError("a named tuple must have as many fields as items")
    made: tuple[Any, ...] = named_tuple(tuple(checked(name, str) for name in fields))(*items)
    return made
