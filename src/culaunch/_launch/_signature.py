"""The parameters of a kernel: where they lie, and their types as far as they are known."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    Attributes
    ----------
    offset, size : int
        Its place in the parameter block, in bytes, as the driver reports it.
    type : str or None
        Its C++ type, such as ``"const float*"``; None where nothing says it.
    """

    offset: int
    size: int
    type: str | None

    def __str__(self) -> str:
        return self.type or f"{self.size} bytes"


@dataclass(frozen=True)
class Signature:
    """The ordered parameters of a kernel.

    Attributes
    ----------
    parameters : tuple[Parameter, ...]
    source : str
        What told the types: ``"name"`` (the mangled name), ``"image"`` (recorded when it was
        compiled), ``"ptx"``, ``"user"``, or ``"layout"`` where only sizes are known.
    """

    parameters: tuple[Parameter, ...]
    source: str

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))})"

    def __len__(self) -> int:
        return len(self.parameters)


class TypeClass(enum.IntEnum):
    """What may be given for a parameter; csrc/type_table.h has the same numbers."""

    UNKNOWN = 0
    POINTER = 1
    SIGNED = 2
    UNSIGNED = 3
    FLOAT = 4
    BOOL = 5


@dataclass(frozen=True)
class ParameterType:
    """What a type's spelling says: its class, its size, and a DLPack element or float type."""

    type_class: TypeClass
    size: int | None = None
    code: int = 0
    bits: int = 0

    @property
    def packed(self) -> tuple[int, int, int]:
        """The form in which the native side takes it."""
        return int(self.type_class), self.code, self.bits


UNKNOWN = ParameterType(TypeClass.UNKNOWN)

_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6  # DLPack's DLDataTypeCode
_SCALARS = {
    "bool": ParameterType(TypeClass.BOOL, 1, _BOOL, 8),
    "char": ParameterType(TypeClass.UNKNOWN, 1),  # its sign is the platform's
    "signed char": ParameterType(TypeClass.SIGNED, 1, _INT, 8),
    "unsigned char": ParameterType(TypeClass.UNSIGNED, 1, _UINT, 8),
    "float": ParameterType(TypeClass.FLOAT, 4, _FLOAT, 32),
    "double": ParameterType(TypeClass.FLOAT, 8, _FLOAT, 64),
    "half": ParameterType(TypeClass.FLOAT, 2, _FLOAT, 16),
    "__half": ParameterType(TypeClass.FLOAT, 2, _FLOAT, 16),
    "nv_bfloat16": ParameterType(TypeClass.FLOAT, 2, _BFLOAT, 16),
    "__nv_bfloat16": ParameterType(TypeClass.FLOAT, 2, _BFLOAT, 16),
    "size_t": ParameterType(TypeClass.UNSIGNED, 8, _UINT, 64),
}
for _name, _size in (("short", 2), ("int", 4), ("long", 8), ("long long", 8)):
    _SCALARS[_name] = ParameterType(TypeClass.SIGNED, _size, _INT, 8 * _size)
    _SCALARS[f"unsigned {_name}"] = ParameterType(TypeClass.UNSIGNED, _size, _UINT, 8 * _size)
for _size in (1, 2, 4, 8):
    _SCALARS[f"int{8 * _size}_t"] = ParameterType(TypeClass.SIGNED, _size, _INT, 8 * _size)
    _SCALARS[f"uint{8 * _size}_t"] = ParameterType(TypeClass.UNSIGNED, _size, _UINT, 8 * _size)
# Element types that only arrays have: DLPack's codes for 8-bit floats.
_ELEMENTS = {"__nv_fp8_e4m3": (10, 8), "__nv_fp8_e5m2": (12, 8), "__nv_fp8_e8m0": (14, 8)}

_INTEGER_WORDS = frozenset(("signed", "unsigned", "short", "long", "int"))
_QUALIFIERS = re.compile(r"\b(const|volatile|__restrict__|__restrict|restrict|struct)\b")
_NAMED = re.compile(r"^(?P<type>.*[\s*&>])(?P<name>[A-Za-z_]\w*)$")


def classify(spelling: str | None) -> ParameterType:
    """Say what a C++ type's spelling means for an argument.

    A type that is not a built-in one (a structure, an enumeration, a template) is unknown: its
    size decides.
    """
    if spelling is None:
        return UNKNOWN
    text = " ".join(_QUALIFIERS.sub(" ", spelling).split())
    if text.endswith(("*", "&", "]")) or "(*)" in text:
        element = _usual(re.sub(r"\s*(\*|&&?|\[\d*\])$", "", text))
        scalar = _SCALARS.get(element)
        if scalar is not None:
            return ParameterType(TypeClass.POINTER, 8, scalar.code, scalar.bits)
        code, bits = _ELEMENTS.get(element, (0, 0))
        return ParameterType(TypeClass.POINTER, 8, code, bits)
    return _SCALARS.get(_usual(text), UNKNOWN)


def make_signature(
    layout: Sequence[tuple[int, int]], types: Sequence[str | None] | None, source: str
) -> Signature:
    """Join a layout with types; types that do not go with it are left out."""
    if types is None or len(types) != len(layout):
        types, source = [None] * len(layout), "layout"
    parameters = []
    for (offset, size), spelling in zip(layout, types, strict=True):
        known = classify(spelling).size
        fits = known is None or known == size
        parameters.append(Parameter(offset, size, spelling if fits else None))
    if not any(parameter.type for parameter in parameters) and parameters:
        source = "layout"
    return Signature(tuple(parameters), source)


def parse_signature(text: str, layout: Sequence[tuple[int, int]], kernel: str) -> Signature:
    """Read a signature that the user wrote, such as ``"float*, const half* x, int n"``.

    Raises
    ------
    ValueError
        If the count or a size is not the kernel's.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"signature must be a str of C type names, as in 'float*, int' (got {text!r})"
        )
    types = [_without_name(part) for part in _split(text)]
    if len(types) != len(layout):
        raise ValueError(
            f"signature {text!r} has {len(types)} parameters; {kernel} has {len(layout)}, "
            f"of {', '.join(str(size) for _, size in layout) or 'no'} bytes"
        )
    for index, (spelling, (_, size)) in enumerate(zip(types, layout, strict=True)):
        known = classify(spelling).size
        if known is not None and known != size:
            raise ValueError(
                f"signature {text!r}: parameter {index} is {spelling!r}, of {known} bytes; "
                f"in {kernel} it has {size} bytes"
            )
    return make_signature(layout, types, "user")


def _without_name(part: str) -> str:
    """Give the type of ``const float* x``; a lone type stays as it is."""
    part = part.strip()
    if not part:
        raise ValueError("signature has an empty parameter: write C type names between the commas")
    bare = " ".join(_QUALIFIERS.sub(" ", part).split())
    match = _NAMED.match(part)
    if match is None or _NAMED.match(bare) is None or _usual(bare) in _SCALARS:
        return part
    return match["type"].strip()


def _usual(text: str) -> str:
    """Give the usual spelling of a type: ``unsigned long`` of ``long unsigned int``."""
    words = text.split()
    if not _INTEGER_WORDS.issuperset(words) or not words:
        return text.removeprefix("std::")
    size = " ".join(word for word in words if word in ("short", "long")) or "int"
    return f"unsigned {size}" if "unsigned" in words else size


def _split(text: str) -> list[str]:
    """Split at the commas that are in no bracket."""
    if not text.strip() or text.strip() == "void":
        return []
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
