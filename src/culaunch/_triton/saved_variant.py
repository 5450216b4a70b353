"""One variant of a saved kernel, and what it says in a manifest."""

from __future__ import annotations

import collections
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._triton.checks import check_arch, check_element, check_symbol
from culaunch._triton.launch_facts import DescriptorLayout, LaunchFacts, parse_version
from culaunch._triton.object_kinds import type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a launch takes, with the least and the most where it is a number.
_FACTS = (
    ("name", str, 0, 0), ("triton_version", str, 0, 0), ("num_warps", int, 1, 32),
    ("num_ctas", int, 1, 16), ("shared", int, 0, 2**31 - 1),
    ("global_scratch_size", int, 0, 2**31 - 1), ("global_scratch_align", int, 1, 2**31 - 1),
    ("profile_scratch_size", int, 0, 2**31 - 1), ("profile_scratch_align", int, 1, 2**31 - 1),
    ("launch_cooperative_grid", bool, 0, 0), ("launch_pdl", bool, 0, 0),
)  # fmt: skip
_MOST_WORDS = 100  # of a version
_MOST_BITS = 10_000  # of a constant; Python reads no number of more than 4,300 digits


@dataclass(frozen=True)
class SavedVariant:
    """One compiled form of a kernel.

    Attributes
    ----------
    arch : str
        What the image is for: ``"sm_90a"``, or ``"compute_80"`` where there is only PTX.
    types : tuple
        Triton's type of each run-time parameter; ``"constexpr"`` for what is folded.
    keys : tuple
        Triton's key of each; the folded value of a constant.
    constants : dict
        The values of the parameters that are constants.
    options : dict
        The compile options that were given.
    facts : LaunchFacts
    image, ptx : str or None
        Names of the cubin and the PTX among the library's members; one may be missing.
    """

    arch: str
    types: tuple[Any, ...]
    keys: tuple[Any, ...]
    constants: dict[str, Any]
    options: dict[str, Any]
    facts: LaunchFacts
    image: str | None = None
    ptx: str | None = None

    def to_manifest(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        return {
            "arch": self.arch,
            "types": _list_types(self.types),
            "keys": _list_keys(self.keys),
            "constants": {name: encode(value) for name, value in self.constants.items()},
            "options": {name: encode(value) for name, value in self.options.items()},
            "launch": self.facts.as_dict(),
            "image": self.image,
            "ptx": self.ptx,
        }

    @classmethod
    def from_manifest(cls, entry: Any) -> SavedVariant:
        """Read what a manifest says; nothing of it is trusted.

        Raises
        ------
        KeyError, TypeError, ValueError
            Where an entry is missing, is of another type, or is nothing that a variant can have.
        """
        return cls(
            arch=check_arch(entry["arch"]),
            types=_read_types(entry["types"]),
            keys=_read_keys(entry["keys"]),
            constants=read_settings(entry["constants"]),
            options=read_settings(entry["options"]),
            facts=_read_facts(entry["launch"]),
            image=_optional(entry["image"]),
            ptx=_optional(entry["ptx"]),
        )

    def __str__(self) -> str:
        arguments = ", ".join(
            _shown(kind, key) for kind, key in zip(self.types, self.keys, strict=True)
        )
        settings = ", ".join(
            f"{name}={_written(value)}"
            for name, value in {**self.constants, **self.options}.items()
        )
        return f"{self.arch} ({arguments}){' ' if settings else ''}{settings}"


def encode(value: Any) -> Any:
    """Return a constant in JSON's types."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of an enumeration the text, not the name
    if isinstance(value, int):
        if value.bit_length() > _MOST_BITS:
            raise ValueError(f"a constant of {value.bit_length()} bits cannot be saved")
        return int(value)
    if isinstance(value, float):
        number = float(value)
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
    """Return a constant as it comes out of a file: a fresh set and a saved one are the same."""
    return decode(encode(value))


def decode(value: Any) -> Any:
    """Return back what :func:`encode` made; an element type becomes :class:`SavedType`."""
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, dict):
        if value.keys() == {"float"} and value["float"] in ("inf", "-inf", "nan"):
            return float(value["float"])
        if value.keys() == {"dtype"}:
            return SavedType(check_element(value["dtype"]))
        if value.keys() == {"fields", "values"}:
            items = [decode(item) for item in checked(value["values"], list)]
            return _named(checked(value["fields"], list), items)
        raise ValueError(f"{value!r:.80} is no constant")
    return value


@dataclass(frozen=True)
class SavedType:
    """An element type among the constants, without Triton."""

    name: str

    def __str__(self) -> str:
        return self.name


_PLAIN = (bool, int, float, str, type(None))


def same_constant(saved: Any, given: Any) -> bool:
    """Whether a call's constant is the one that a variant was compiled with."""
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
        # NumPy's numbers are taken for what they are; an array is no constant.
        kinds = {(one.__module__, one.__name__) for one in type(given).__mro__}
        if ("numpy", "generic") not in kinds:
            return False
        given = given.item()
        if not isinstance(given, _PLAIN):
            return False
    if isinstance(saved, bool) != isinstance(given, bool):
        return False
    if isinstance(saved, float) != isinstance(given, float):
        return False
    if isinstance(saved, float) and isinstance(given, float):
        return repr(saved) == repr(float(given))  # NaN is itself, and -0.0 is not 0.0
    return bool(saved == given)


def checked(value: Any, kind: type) -> Any:
    """Return a value of a manifest, which must be of one of JSON's types.

    Raises
    ------
    TypeError
        If it is of another type; a bool is no int.
    """
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is not a {kind.__name__}")
    return value


@functools.lru_cache(maxsize=256)
def named_tuple(fields: tuple[str, ...]) -> Any:
    """Return a type of named tuples: to Triton one type is as good as another of its fields."""
    return collections.namedtuple("named", fields)


def like_tuple(kind: Any, items: Any) -> Any:
    """Return items as a tuple of the fields that another one has, if it has any."""
    fields = getattr(kind, "_fields", None)
    return tuple(items) if fields is None else named_tuple(tuple(fields))(*items)


def fields_fit(saved: Any, given: Any) -> bool:
    """Whether a tuple has the fields that the saved one was compiled with, if it has any."""
    fields = getattr(saved, "_fields", None)
    return fields is None or fields == getattr(given, "_fields", None)


def read_settings(entry: Any) -> dict[str, Any]:
    """Read constants or options by name."""
    return {name: decode(value) for name, value in checked(entry, dict).items()}


def _shown(kind: Any, key: Any) -> str:
    if isinstance(kind, tuple):
        items = [_shown(*pair) for pair in zip(kind, key, strict=True)]
        fields = getattr(kind, "_fields", None)
        if fields is not None:
            items = [f"{name}={item}" for name, item in zip(fields, items, strict=True)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if kind == "constexpr":
        return repr(key)
    return f"{kind}:16" if key == "D" else str(kind)


def _read_facts(entry: Any) -> LaunchFacts:
    facts = {name: entry[name] for name, *_ in _FACTS}
    for name, kind, least, most in _FACTS:
        if type(facts[name]) is not kind:
            raise TypeError(f"{name} is {facts[name]!r:.60}: it must be a {kind.__name__}")
        if kind is int and not least <= facts[name] <= most:
            raise ValueError(f"{name} is {facts[name]!r:.60}: it must be {least} to {most}")
    check_symbol(facts["name"])
    _check_version(facts["triton_version"])
    for name in ("global_scratch_align", "profile_scratch_align"):
        if facts[name] & (facts[name] - 1):
            raise ValueError(f"{name} is {facts[name]}: it must be a power of two")
    stages = _number(entry.get("num_stages", 0))
    layouts = tuple(_layout(one) for one in checked(entry["descriptors"], list))
    return LaunchFacts(**facts, num_stages=stages, descriptors=layouts)


@functools.lru_cache(maxsize=64)
def _check_version(text: str) -> None:
    """Refuse what is no version of Triton."""
    if len(text) > _MOST_WORDS:
        raise ValueError("triton_version is too long")
    parse_version(text)


def _layout(entry: Mapping[str, Any]) -> DescriptorLayout:
    block = tuple(_number(size) for size in checked(entry["block_size"], list))
    if not 1 <= len(block) <= 5:
        raise ValueError("a tensor descriptor has 1 to 5 dimensions")
    return DescriptorLayout(
        _number(entry["swizzle"]),
        _number(entry["elem_size"]),
        _number(entry["elem_type"]),
        block,
        checked(entry["fp4_padded"], bool),
    )


def _number(value: Any) -> int:
    if not 0 <= checked(value, int) < 2**31:
        raise ValueError(f"{value!r:.60} is out of range")
    return int(value)


def _written(value: Any) -> str:
    if isinstance(value, str):  # of a file, perhaps with control characters: repr shows them
        return f"{value!r:.60}"
    return spell(value) if isinstance(value, int) else f"{value!s:.60}"


def _optional(value: Any) -> str | None:
    return None if value is None else str(checked(value, str))


def _list_types(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    items = [_list_types(item) for item in value]
    fields = getattr(value, "_fields", None)
    return items if fields is None else {"fields": list(fields), "types": items}


def _list_keys(value: Any) -> Any:
    return [_list_keys(item) for item in value] if isinstance(value, tuple) else value


def _read_types(value: Any) -> tuple[Any, ...]:
    fields = None
    if isinstance(value, dict):
        fields = checked(value["fields"], list)
        value = value["types"]
    items = [
        _read_types(item) if isinstance(item, (list, dict)) else checked(item, str)
        for item in checked(value, list)
    ]
    return tuple(items) if fields is None else _named(fields, items)


def _named(fields: list[Any], items: list[Any]) -> tuple[Any, ...]:
    if len(fields) != len(items):
        raise ValueError("a named tuple has another number of fields than of items")
    made: tuple[Any, ...] = named_tuple(tuple(checked(name, str) for name in fields))(*items)
    return made


def _read_keys(value: Any) -> tuple[Any, ...]:
    return tuple(
        _read_keys(item) if isinstance(item, list) else _read_key(item)
        for item in checked(value, list)
    )


def _read_key(value: Any) -> Any:
    if value is None or (type(value) is int and value == 1) or value in ("", "D"):
        return value
    raise ValueError(f"{value!r:.60} is no key")
