"""The names that C++ code uses for an embedded image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIXES = {"culaunch": "culaunch_image_", "tvm-ffi": "__tvm_ffi__cubin_"}
# Not the name with a suffix: then the size of `a` and an image `a_size` would be one symbol.
_SIZE_PREFIX = "culaunch_size_"


@dataclass(frozen=True)
class Symbols:
    """The symbols of one embedded image."""

    name: str
    prefix: str
    """The text before the name in every symbol of the style."""

    data: str
    """The first byte of the image."""

    size: str | None
    """An 8-byte integer with the image's size; None if the style has none."""

    end: str | None
    """The byte after the image; None if the style has none."""

    def __iter__(self) -> Iterator[str]:
        return iter([s for s in (self.data, self.size, self.end) if s is not None])


def symbol_names(style: str, name: str) -> Symbols:
    """Return the symbols that a style's macro declares for `name`."""
    if style not in PREFIXES:
        raise ValueError(
            f"symbol_style must be one of {', '.join(map(repr, PREFIXES))} (got {style!r})"
        )
    prefix = PREFIXES[style]
    data = prefix + name
    if style == "culaunch":
        return Symbols(name, prefix, data, size=_SIZE_PREFIX + name, end=None)
    return Symbols(name, prefix, data, size=None, end=f"{data}_end")
