"""One variant of a saved kernel, and its form in a manifest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._triton.saved.variant_entry import (
    list_keys,
    list_types,
    optional,
    read_facts,
    read_keys,
    read_types,
)
from culaunch._triton.variants.checks import check_arch
from culaunch._triton.variants.constants import encode, read_settings

if TYPE_CHECKING:
    from culaunch._triton.variants.launch_facts import LaunchFacts


@dataclass(frozen=True)
class SavedVariant:
    """One compiled form of a kernel."""

    arch: str
    """The target of the image: ``"sm_90a"``, or ``"compute_80"`` if there is only PTX."""
    types: tuple[Any, ...]
    """Triton's type of each run-time parameter; ``"constexpr"`` for a folded one."""
    keys: tuple[Any, ...]
    """Triton's key of each; the folded value of a constant."""
    constants: dict[str, Any]
    """The values of the parameters that are constants."""
    options: dict[str, Any]
    """The compile options that were given."""
    facts: LaunchFacts
    # Names of the cubin and the PTX among the library's members; one may be missing.
    image: str | None = None
    ptx: str | None = None

    def to_manifest(self) -> dict[str, Any]:
        """Return its form in a manifest."""
        return {
            "arch": self.arch,
            "types": list_types(self.types),
            "keys": list_keys(self.keys),
            "constants": {name: encode(value) for name, value in self.constants.items()},
            "options": {name: encode(value) for name, value in self.options.items()},
            "launch": self.facts.as_dict(),
            "image": self.image,
            "ptx": self.ptx,
        }

    @classmethod
    def from_manifest(cls, entry: Any) -> SavedVariant:
        """Read the form in a manifest, without trust.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is missing, has the wrong type, or is invalid for a variant.
        """
        return cls(
            arch=check_arch(entry["arch"]),
            types=read_types(entry["types"]),
            keys=read_keys(entry["keys"]),
            constants=read_settings(entry["constants"]),
            options=read_settings(entry["options"]),
            facts=read_facts(entry["launch"]),
            image=optional(entry["image"]),
            ptx=optional(entry["ptx"]),
        )

    def __str__(self) -> str:
        arguments = ", ".join(
            _shown(kind, key) for kind, key in zip(self.types, self.keys, strict=True)
        )
        settings = ", ".join(
            f"{name}={_value_text(value)}"
            for name, value in {**self.constants, **self.options}.items()
        )
        return f"{self.arch} ({arguments}){' ' if settings else ''}{settings}"


def _shown(kind: Any, key: Any) -> str:
    if isinstance(kind, tuple):
        items = [_shown(*pair) for pair in zip(kind, key, strict=True)]
        fields = getattr(kind, "_fields", None)
        if fields is not None:
            items = [f"{name}={item}" for name, item in zip(fields, items, strict=True)]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if kind == "constexpr":
        # A folded argument has a value but no type.
        return repr(key)
    return f"{kind}:16" if key == "D" else str(kind)


def _value_text(value: Any) -> str:
    if isinstance(value, str):  # repr shows control characters in a file's text
        return f"{value!r:.60}"
    return spell(value) if isinstance(value, int) else f"{value!s:.60}"
