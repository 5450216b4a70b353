"""The parts of a variant in a manifest: written, and read without trust."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from culaunch._triton.upstream.versions import parse_version
from culaunch._triton.variants.checks import check_symbol
from culaunch._triton.variants.constants import checked, make_named
from culaunch._triton.variants.launch_facts import DescriptorLayout, LaunchFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

# The settings of a launch, with the minimum and the maximum of each number.
_FACTS = (
    ("name", str, 0, 0), ("triton_version", str, 0, 0), ("num_warps", int, 1, 32),
    ("num_ctas", int, 1, 16), ("shared", int, 0, 2**31 - 1),
    ("global_scratch_size", int, 0, 2**31 - 1), ("global_scratch_align", int, 1, 2**31 - 1),
    ("profile_scratch_size", int, 0, 2**31 - 1), ("profile_scratch_align", int, 1, 2**31 - 1),
    ("launch_cooperative_grid", bool, 0, 0), ("launch_pdl", bool, 0, 0),
)  # fmt: skip
_MOST_WORDS = 100  # words of a version


def read_facts(entry: Any) -> LaunchFacts:
    """Return the facts for a launch, checked against their limits."""
    facts = {name: entry[name] for name, *_ in _FACTS}
    for name, kind, least, most in _FACTS:
        # Compare the exact type, because `isinstance` accepts JSON's true as an int.
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
    """Refuse a text that is not a version of Triton."""
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


def optional(value: Any) -> str | None:
    """Return a str, or None."""
    return None if value is None else str(checked(value, str))


def list_types(value: Any) -> Any:
    """Return types in JSON form."""
    if not isinstance(value, tuple):
        return value
    items = [list_types(item) for item in value]
    fields = getattr(value, "_fields", None)
    return items if fields is None else {"fields": list(fields), "types": items}


def list_keys(value: Any) -> Any:
    """Return keys in JSON form."""
    return [list_keys(item) for item in value] if isinstance(value, tuple) else value


def read_types(value: Any) -> tuple[Any, ...]:
    """Restore the types from `list_types`."""
    fields = None
    if isinstance(value, dict):
        fields = checked(value["fields"], list)
        value = value["types"]
    items = [
        read_types(item) if isinstance(item, (list, dict)) else checked(item, str)
        for item in checked(value, list)
    ]
    return tuple(items) if fields is None else make_named(fields, items)


def read_keys(value: Any) -> tuple[Any, ...]:
    """Restore the keys from `list_keys`."""
    return tuple(
        read_keys(item) if isinstance(item, list) else _read_key(item)
        for item in checked(value, list)
    )


def _read_key(value: Any) -> Any:
    if value is None or (type(value) is int and value == 1) or value in ("", "D"):
        return value
    raise ValueError(f"{value!r:.60} is not a key")
