"""Element types: one table, whose numbers the extension has, for functions and fused kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from culaunch._base.values import spell
from culaunch._core import NUMBERS
from culaunch._launch.formats.dlpack import TypeCode


@dataclass(frozen=True, eq=False)
class DType:
    """An element type.

    It compares equal to its name and to the same type of a framework: ``x.dtype == "float32"``. Its
    text is the C++ spelling, so ``kernels[f"scale<{x.dtype}>"]`` finds the kernel.

    Attributes
    ----------
    name : str
        NumPy's name, such as ``"float32"``.
    number : int
        The number that programs and native calls use.
    code, bits : int
        DLPack's numbers.
    kind : str
        ``b``, ``i``, ``u``, ``f`` or ``c``: bool, signed, unsigned, real, complex.
    spelling : str
        Its C++ type, such as ``"__nv_bfloat16"``.

    Examples
    --------
    >>> @cl.function
    ... def scaled(x, factor: float):
    ...     y = cl.empty_like(x)
    ...     module[f"scale<{x.dtype}>"][1, 256](y, x, factor, x.size)
    ...     return y
    >>> scaled(x, 2.0).numpy()[:3]
    array([2., 2., 2.], dtype=float32)
    """

    name: str
    number: int
    code: int
    bits: int
    kind: str
    spelling: str

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes; of numbers of 4 bits, of two of them."""
        return max(self.bits // 8, 1)

    @property
    def is_weak(self) -> bool:
        """Whether it belongs to a Python scalar, which takes the type of the other operand."""
        return self.number >= FIRST_WEAK

    @property
    def is_half(self) -> bool:
        """Whether fused functions compute it in float32, and round it when it is stored."""
        return self.name in ("float16", "bfloat16")

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.spelling

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.number == other.number
        try:
            # There is one object of each type.
            return find_dtype(other) is self
        except TypeError:  # a name that cannot be hashed
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


# Native calls know a scalar of an element type by this number and the type's own, and what Python's
# own numbers are by a number from FIRST_WEAK on.
FIRST_SCALAR = NUMBERS["operands"]["FIRST_SCALAR"]
FIRST_WEAK = NUMBERS["operands"]["FIRST_WEAK"]

# What C++ calls the types. CUDA has none for the two of AMD's.
_SPELLINGS = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
    "float8_e4m3fn": "__nv_fp8_e4m3",
    "float8_e5m2": "__nv_fp8_e5m2",
    "float8_e8m0fnu": "__nv_fp8_e8m0",
    "float8_e4m3fnuz": "unsigned char",
    "float8_e5m2fnuz": "unsigned char",
    "float4_e2m1fn_x2": "__nv_fp4x2_e2m1",  # two in a byte
}
# All others are real: of floating point there is a code for each kind.
_KINDS = {
    int(TypeCode.BOOL): "b",
    int(TypeCode.INT): "i",
    int(TypeCode.UINT): "u",
    int(TypeCode.COMPLEX): "c",
}
_CODES, _BITS = NUMBERS["ElementTypeCode"], NUMBERS["ElementTypeBits"]

DTYPES = tuple(
    DType(name, number, code, _BITS[name], _KINDS.get(code, "f"), _SPELLINGS[name])
    for name, number, code in (
        (name, number, _CODES[name]) for name, number in NUMBERS["ElementType"].items()
    )
)
BY_NAME = {dtype.name: dtype for dtype in DTYPES}
_BY_DLPACK = {(dtype.code, dtype.bits): dtype for dtype in DTYPES}


def as_dtype(what: object) -> DType:
    """Return the element type that a name, a type of a framework, or one of ours stands for.

    Raises
    ------
    TypeError
        If there is none.
    """
    found = find_dtype(what)
    if found is None:
        raise TypeError(f"dtype must be one of {', '.join(BY_NAME)} (got {spell(what)})")
    return found


def find_dtype(what: object) -> DType | None:
    """Return the element type that an object stands for, or None."""
    if isinstance(what, DType):
        return what
    if isinstance(what, str):
        return BY_NAME.get(what)
    # numpy.float32 is a class, numpy.dtype and torch.dtype print as "float32", "torch.float32".
    # Nothing else is written out: it may be large, or no type at all.
    if isinstance(what, type):
        return BY_NAME.get(what.__name__) if what.__module__ != "builtins" else None
    if "dtype" not in type(what).__name__.lower():
        return None
    return BY_NAME.get(str(what).rpartition(".")[2])


def from_dlpack(code: int, bits: int) -> DType | None:
    """Return the element type of DLPack's code and bits, or None."""
    return _BY_DLPACK.get((code, bits))
