"""The arguments that a C++ type accepts, from its spelling."""

from __future__ import annotations

import enum
import os
import re
from dataclasses import dataclass, replace

from culaunch._core import NUMBERS
from culaunch._launch.formats.dlpack import TypeCode

_CLASSES = NUMBERS["TypeClass"]


class TypeClass(enum.IntEnum):
    """The class of a parameter's type; csrc/arguments/types/rules.cpp lists their arguments."""

    UNKNOWN = _CLASSES["UNKNOWN"]
    POINTER = _CLASSES["POINTER"]
    SIGNED = _CLASSES["SIGNED"]
    UNSIGNED = _CLASSES["UNSIGNED"]
    FLOAT = _CLASSES["FLOAT"]
    BOOL = _CLASSES["BOOL"]
    STRUCTURE = _CLASSES["STRUCTURE"]
    NAMED = _CLASSES["NAMED"]
    """A type of the program: a structure or an enumeration, which the name does not tell apart."""
    ENUMERATION = _CLASSES["ENUMERATION"]
    FLOAT8 = _CLASSES["FLOAT8"]


@dataclass(frozen=True)
class ParameterType:
    """The facts that a type's spelling contains."""

    type_class: TypeClass
    size: int | None = None
    """In bytes; None if the spelling does not determine it."""
    # The DLPack type of a pointer's elements, or of a floating-point number; 0 bits if it is not
    # known.
    code: int = 0
    bits: int = 0
    may_write: bool = False
    """Whether the kernel may write to the memory that a pointer points to."""

    @property
    def packed(self) -> tuple[int, int, int, bool]:
        """The form for the native side."""
        return int(self.type_class), self.code, self.bits, self.may_write


UNKNOWN = ParameterType(TypeClass.UNKNOWN)


def classify(spelling: str | None, names_are_types: bool = False) -> ParameterType:
    """Return the facts in a C++ type's spelling that matter for an argument.

    Parameters
    ----------
    spelling : str or None
        The type; None if it is unknown.
    names_are_types : bool, optional
        Whether a name from the program is known to be a structure or an enumeration. In a signature
        that a user wrote, it may also stand for a number or a pointer.
    """
    if spelling is None:
        return UNKNOWN
    # Qualifiers restrict the use of a parameter, and do not change its type.
    text = " ".join(QUALIFIERS.sub(" ", spelling).split())
    if text.endswith("::*"):
        return ParameterType(TypeClass.STRUCTURE)  # a pointer to a member: an offset
    if text.endswith(("*", "&", "]")) or "(*)" in text or text == "decltype(nullptr)":
        return _pointer(text, spelling)
    if text.startswith("enum "):
        name, _, underlying = text.partition(":" if "::" not in text else " : ")
        return classify(underlying.strip()) if underlying else _ENUMERATION
    name = usual(text)
    if name in TYPES:
        return TYPES[name]
    if text.startswith("struct ") or text.endswith((">", "}", "#1}")):
        return ParameterType(TypeClass.STRUCTURE)
    if names_are_types and _NAME.fullmatch(text):
        return ParameterType(TypeClass.NAMED)
    return UNKNOWN


def usual(text: str) -> str:
    """Return the usual spelling of a type: ``unsigned long`` for ``long unsigned int``."""
    words = text.split()
    # ``long unsigned int`` and ``unsigned long`` are one type; the words may come in any order.
    if not INTEGER_WORDS.issuperset(words) or not words:
        return text.removeprefix("struct ").removeprefix("std::")
    size = " ".join(word for word in words if word in ("short", "long")) or "int"
    return f"unsigned {size}" if "unsigned" in words else size


def _pointer(text: str, spelling: str) -> ParameterType:
    element = TYPES.get(usual(re.sub(r"\s*(\*|&&?|(\(&&?\))?\s*\[\d*\])$", "", text)), UNKNOWN)
    return ParameterType(
        TypeClass.POINTER, 8, element.code, element.bits, not _points_to_const(spelling)
    )


def _points_to_const(spelling: str) -> bool:
    """Tell whether the target of a pointer is const. In ``const float**`` it is not."""
    # Remove the part after the last star, which qualifies the pointer itself, and the star. The
    # rest describes the pointee.
    pointee = re.sub(r"(const|volatile|__restrict__|__restrict|restrict|\s)+$", "", spelling)
    pointee = re.sub(r"(\*|&&?|(\(&&?\))?\s*\[\d*\])$", "", pointee).rstrip()
    last = re.split(r"[*&]", pointee)[-1]
    # ``Box<const int>*`` points to a Box that is not const.
    while "<" in last and (shorter := re.sub(r"<[^<>]*>", "", last)) != last:
        last = shorter
    return re.search(r"\bconst\b", last) is not None


INTEGER_WORDS = frozenset(("signed", "unsigned", "short", "long", "int"))
QUALIFIERS = re.compile(r"\b(const|volatile|__restrict__|__restrict|restrict)\b")
_NAME = re.compile(r"(\w+|\(anonymous namespace\))(::(\w+|\(anonymous namespace\)))*")

# ---- types with names of their own

_ENUMERATION = ParameterType(TypeClass.ENUMERATION)


def _integer(bytes_: int, is_signed: bool) -> ParameterType:
    if is_signed:
        return ParameterType(TypeClass.SIGNED, bytes_, TypeCode.INT, 8 * bytes_)
    return ParameterType(TypeClass.UNSIGNED, bytes_, TypeCode.UINT, 8 * bytes_)


def _structure(size: int) -> ParameterType:
    return ParameterType(TypeClass.STRUCTURE, size)


_HALF = ParameterType(TypeClass.FLOAT, 2, TypeCode.FLOAT, 16)
_BFLOAT16 = ParameterType(TypeClass.FLOAT, 2, TypeCode.BFLOAT, 16)
TYPES = {
    "bool": ParameterType(TypeClass.BOOL, 1, TypeCode.BOOL, 8),
    "signed char": _integer(1, True),
    "unsigned char": _integer(1, False),
    # A char has the host's sign. Its pointers accept bytes of anything.
    "char": ParameterType(
        TypeClass.SIGNED if os.uname().machine == "x86_64" else TypeClass.UNKNOWN, 1
    ),
    "float": ParameterType(TypeClass.FLOAT, 4, TypeCode.FLOAT, 32),
    "double": ParameterType(TypeClass.FLOAT, 8, TypeCode.FLOAT, 64),
    "half": _HALF,
    "__half": _HALF,
    "_Float16": _HALF,
    "nv_bfloat16": _BFLOAT16,
    "__nv_bfloat16": _BFLOAT16,
    "__nv_fp8_e4m3": ParameterType(TypeClass.FLOAT8, 1, TypeCode.FLOAT8_E4M3FN, 8),
    "__nv_fp8_e5m2": ParameterType(TypeClass.FLOAT8, 1, TypeCode.FLOAT8_E5M2, 8),
    "__nv_fp8_e8m0": ParameterType(TypeClass.FLOAT8, 1, TypeCode.FLOAT8_E8M0FNU, 8),
    "size_t": _integer(8, False),
    "uintptr_t": _integer(8, False),
    "ptrdiff_t": _integer(8, True),
    "intptr_t": _integer(8, True),
    "cudaTextureObject_t": _integer(8, False),
    "cudaSurfaceObject_t": _integer(8, False),
    "char8_t": _integer(1, False),
    "char16_t": _integer(2, False),
    "char32_t": _integer(4, False),
    "wchar_t": _integer(4, True),
    "byte": replace(_ENUMERATION, size=1),
    "CUdeviceptr": ParameterType(TypeClass.POINTER, 8),
    "dim3": _structure(12),
    "cuComplex": _structure(8),
    "cuFloatComplex": _structure(8),
    "cuDoubleComplex": _structure(16),
    "__int128": _structure(16),
    "unsigned __int128": _structure(16),
    "CUtensorMap": _structure(128),
    "CUtensorMap_st": _structure(128),
}
for _name, _size in (("short", 2), ("int", 4), ("long", 8), ("long long", 8)):
    TYPES[_name] = _integer(_size, True)
    TYPES[f"unsigned {_name}"] = _integer(_size, False)
for _size in (1, 2, 4, 8):
    TYPES[f"int{8 * _size}_t"] = _integer(_size, True)
    TYPES[f"uint{8 * _size}_t"] = _integer(_size, False)
# CUDA's vector types (vector_types.h): float4, uchar2 and so on, aligned to their size up to 16.
for _name, _size in (
    ("char", 1), ("short", 2), ("int", 4), ("long", 8), ("longlong", 8), ("float", 4),
    ("double", 8),
):  # fmt: skip
    for _count in (1, 2, 3, 4):
        for _prefix in ("",) if _name in ("float", "double") else ("", "u"):
            TYPES[f"{_prefix}{_name}{_count}"] = _structure(_size * _count)
            if _count == 4 and _size == 8:
                TYPES[f"{_prefix}{_name}4_16a"] = _structure(32)
                TYPES[f"{_prefix}{_name}4_32a"] = _structure(32)
# Several small floats in one word (cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, cuda_fp6.h, cuda_fp4.h).
for _name in ("__half", "half", "__nv_bfloat16", "nv_bfloat16"):
    TYPES[f"{_name}2"] = _structure(4)
    TYPES[f"{_name}_raw"] = _structure(2)
    TYPES[f"{_name}2_raw"] = _structure(4)
for _name, _kinds in (
    ("fp8", ("e4m3", "e5m2", "e8m0")), ("fp6", ("e2m3", "e3m2")), ("fp4", ("e2m1",)),
):  # fmt: skip
    for _kind in _kinds:
        TYPES.setdefault(f"__nv_{_name}_{_kind}", _structure(1))
        TYPES[f"__nv_{_name}x2_{_kind}"] = _structure(1 if _name == "fp4" else 2)
        TYPES[f"__nv_{_name}x4_{_kind}"] = _structure(2 if _name == "fp4" else 4)
