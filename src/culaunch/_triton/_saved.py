"""One variant of a saved kernel, and what it says in a manifest."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culaunch._errors import ImageError
from culaunch._triton._facts import DescriptorLayout, LaunchFacts
from culaunch._triton._objects import type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

_FACTS = (
    ("name", str), ("triton_version", str), ("num_warps", int), ("num_ctas", int), ("shared", int),
    ("global_scratch_size", int), ("global_scratch_align", int), ("profile_scratch_size", int),
    ("profile_scratch_align", int), ("launch_cooperative_grid", bool), ("launch_pdl", bool),
)  # fmt: skip


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
    described: str = field(default="", compare=False)

    def to_manifest(self) -> dict[str, Any]:
        """Give what the manifest says of it."""
        return {
            "arch": self.arch,
            "types": _listed(self.types),
            "keys": _listed(self.keys),
            "constants": {name: encode(value) for name, value in self.constants.items()},
            "options": {name: encode(value) for name, value in self.options.items()},
            "launch": self.facts.as_dict(),
            "image": self.image,
            "ptx": self.ptx,
        }

    @classmethod
    def from_manifest(cls, entry: Any, source: str) -> SavedVariant:
        """Read what a manifest says; nothing of it is trusted.

        Raises
        ------
        ImageError
            Where an entry is missing or of another type.
        """
        try:
            launch = entry["launch"]
            facts = {name: _checked(launch[name], kind) for name, kind in _FACTS}
            layouts = tuple(_layout(one) for one in launch["descriptors"])
            return cls(
                arch=_checked(entry["arch"], str),
                types=_tupled(entry["types"]),
                keys=_tupled(entry["keys"]),
                constants={name: decode(value) for name, value in entry["constants"].items()},
                options={name: decode(value) for name, value in entry["options"].items()},
                facts=LaunchFacts(**facts, descriptors=layouts),
                image=_optional(entry["image"]),
                ptx=_optional(entry["ptx"]),
            )
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ImageError(
                f"the manifest's entry of a variant is wrong: {type(error).__name__} {error}",
                source=source,
            ) from None

    def __str__(self) -> str:
        arguments = ", ".join(
            _shown(kind, key) for kind, key in zip(self.types, self.keys, strict=True)
        )
        settings = ", ".join(
            f"{name}={value}" for name, value in {**self.constants, **self.options}.items()
        )
        return f"{self.arch} ({arguments}){' ' if settings else ''}{settings}"


def encode(value: Any) -> Any:
    """Give a constant in JSON's types."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, SavedType):
        return {"dtype": value.name}
    if type(value).__name__ == "dtype":
        return {"dtype": type_name(value)}
    if type(value).__name__ == "constexpr":
        return encode(value.value)
    raise TypeError(
        f"a constant of type {type(value).__qualname__} cannot be saved: use numbers, strings, "
        "None, element types and tuples of these"
    )


def decode(value: Any) -> Any:
    """Give back what :func:`encode` made; an element type becomes :class:`SavedType`."""
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float(value["float"])
        if value.keys() == {"dtype"}:
            return SavedType(_checked(value["dtype"], str))
        raise ValueError(f"{value!r:.80} is no constant")
    return value


@dataclass(frozen=True)
class SavedType:
    """An element type among the constants, without Triton."""

    name: str

    def __str__(self) -> str:
        return self.name


def same_constant(saved: Any, given: Any) -> bool:
    """Whether a call's constant is the one that a variant was compiled with."""
    if type(given).__name__ == "constexpr":
        given = given.value
    if isinstance(saved, SavedType):
        return type_name(given) == saved.name
    if isinstance(saved, tuple):
        return (
            isinstance(given, (tuple, list))
            and len(saved) == len(given)
            and all(map(same_constant, saved, given))
        )
    if isinstance(saved, bool) != isinstance(given, bool):
        return False
    if isinstance(saved, float) != isinstance(given, float):
        return False
    return bool(saved == given)


def _shown(kind: Any, key: Any) -> str:
    if isinstance(kind, tuple):
        return f"({', '.join(_shown(*pair) for pair in zip(kind, key, strict=True))})"
    if kind == "constexpr":
        return repr(key)
    return f"{kind}:16" if key == "D" else str(kind)


def _layout(entry: Mapping[str, Any]) -> DescriptorLayout:
    block = tuple(_checked(size, int) for size in entry["block_size"])
    if not 1 <= len(block) <= 5:
        raise ValueError("a tensor descriptor has 1 to 5 dimensions")
    return DescriptorLayout(
        _checked(entry["swizzle"], int),
        _checked(entry["elem_size"], int),
        _checked(entry["elem_type"], int),
        block,
        _checked(entry["fp4_padded"], bool),
    )


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is not a {kind.__name__}")
    if type(value) is int and not 0 <= value < 2**31:
        raise ValueError(f"{value!r:.60} is out of range")
    return value


def _optional(value: Any) -> str | None:
    return None if value is None else str(_checked(value, str))


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _tupled(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.60} is not a list")
    return tuple(_tupled(item) if isinstance(item, list) else _leaf(item) for item in value)


def _leaf(value: Any) -> Any:
    if value is None or value == 1 or isinstance(value, str):
        return value
    raise TypeError(f"{value!r:.60} is no type or key")
