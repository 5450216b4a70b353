"""Element types: what they are in C++, and how they promote (array API standard, 2024.12)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from culaunch._base.values import spell
from culaunch._core import NUMBERS
from culaunch._launch.dlpack import TypeCode


@dataclass(frozen=True, eq=False)
class DType:
    """An element type.

    It is equal to its name and to the same type of a framework: ``x.dtype == "float32"``.

    Attributes
    ----------
    name : str
        NumPy's name of it, such as ``"float32"``.
    number : int
        What the native call knows it by; 64 and more are Python scalars.
    code, bits : int
        As DLPack has them.
    kind : str
        ``b``, ``i``, ``u``, ``f`` or ``c``: bool, signed, unsigned, real, complex.
    storage, compute : str
        Its C++ type in memory, and the one that it is computed in.
    """

    name: str
    number: int
    code: int
    bits: int
    kind: str
    storage: str
    compute: str

    @property
    def is_weak(self) -> bool:
        """Whether it is a Python scalar's, which takes the type of the arrays it meets."""
        return self.number >= FIRST_WEAK

    @property
    def is_half(self) -> bool:
        """Whether it is computed in float32 and rounded when it is stored."""
        return self.name in ("float16", "bfloat16")

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.number == other.number
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)


def _array_type(
    name: str, code: TypeCode, bits: int, kind: str, storage: str, compute: str
) -> DType:
    return DType(name, NUMBERS["ElementType"][name], code, bits, kind, storage, compute)


_OPERANDS = NUMBERS["operands"]
FIRST_SCALAR = _OPERANDS["FIRST_SCALAR"]
FIRST_WEAK = _OPERANDS["FIRST_WEAK"]

bool_ = _array_type("bool", TypeCode.BOOL, 8, "b", "bool", "bool")
int8 = _array_type("int8", TypeCode.INT, 8, "i", "signed char", "signed char")
int16 = _array_type("int16", TypeCode.INT, 16, "i", "short", "short")
int32 = _array_type("int32", TypeCode.INT, 32, "i", "int", "int")
int64 = _array_type("int64", TypeCode.INT, 64, "i", "long long", "long long")
uint8 = _array_type("uint8", TypeCode.UINT, 8, "u", "unsigned char", "unsigned char")
uint16 = _array_type("uint16", TypeCode.UINT, 16, "u", "unsigned short", "unsigned short")
uint32 = _array_type("uint32", TypeCode.UINT, 32, "u", "unsigned int", "unsigned int")
uint64 = _array_type("uint64", TypeCode.UINT, 64, "u", "unsigned long long", "unsigned long long")
float16 = _array_type("float16", TypeCode.FLOAT, 16, "f", "__half", "float")
bfloat16 = _array_type("bfloat16", TypeCode.BFLOAT, 16, "f", "__nv_bfloat16", "float")
float32 = _array_type("float32", TypeCode.FLOAT, 32, "f", "float", "float")
float64 = _array_type("float64", TypeCode.FLOAT, 64, "f", "double", "double")
complex64 = _array_type("complex64", TypeCode.COMPLEX, 64, "c", "complex<float>", "complex<float>")
complex128 = _array_type(
    "complex128", TypeCode.COMPLEX, 128, "c", "complex<double>", "complex<double>"
)

# Python scalars: values of these types are computed as wide as C++ goes, and cast where they meet
# an array.
weak_bool = DType("Python bool", _OPERANDS["WEAK_BOOL"], TypeCode.BOOL, 8, "b", "bool", "bool")
weak_int = DType(
    "Python int", _OPERANDS["WEAK_INT"], TypeCode.INT, 64, "i", "long long", "long long"
)
weak_float = DType(
    "Python float", _OPERANDS["WEAK_FLOAT"], TypeCode.FLOAT, 64, "f", "double", "double"
)
weak_complex = DType(
    "Python complex",
    _OPERANDS["WEAK_COMPLEX"],
    TypeCode.COMPLEX,
    128,
    "c",
    "complex<double>",
    "complex<double>",
)

DTYPES = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float16, bfloat16, float32, float64, complex64, complex128,
)  # fmt: skip
WEAK = (weak_bool, weak_int, weak_float, weak_complex)
BY_NAME = {dtype.name: dtype for dtype in DTYPES}

_SIGNED = (int8, int16, int32, int64)
_UNSIGNED = (uint8, uint16, uint32, uint64)
_KIND_NAMES = {"b": "bool", "i": "integer", "u": "integer", "f": "real", "c": "complex"}


def as_dtype(what: object) -> DType:
    """Return the element type that a name, a type of a framework, or one of ours stands for.

    Raises
    ------
    TypeError
        If there is none.
    """
    if isinstance(what, DType) and not what.is_weak:
        return what
    # numpy.float32 is a class, numpy.dtype and torch.dtype print as "float32", "torch.float32".
    # An int is neither, and one that is large cannot be written at all.
    text = what.__name__ if isinstance(what, type) else "" if isinstance(what, int) else str(what)
    name = text.rpartition(".")[2]
    found = BY_NAME.get(name)
    if found is None:
        known = ", ".join(BY_NAME)
        raise TypeError(f"dtype must be one of {known} (got {spell(what)})")
    return found


def promote(first: DType, second: DType, what: str) -> DType:
    """Return the type that two operands of ``what`` have in common.

    Raises
    ------
    TypeError
        If the array API standard defines none; the message says which cast to write.
    """
    if first == second:
        return first
    if first.is_weak and second.is_weak:
        return _promote_weak(first, second, what)
    if first.is_weak or second.is_weak:
        return _promote_scalar(*((second, first) if first.is_weak else (first, second)), what)
    if first.kind == second.kind:
        if {first, second} == {float16, bfloat16}:
            raise _refusal(first, second, what)
        return max(first, second, key=lambda dtype: dtype.number)
    kinds = {first.kind, second.kind}
    if kinds == {"i", "u"}:
        signed, unsigned = (first, second) if first.kind == "i" else (second, first)
        bits = max(signed.bits, 2 * unsigned.bits)
        if bits <= 64:
            return next(dtype for dtype in _SIGNED if dtype.bits == bits)
    if kinds == {"f", "c"}:
        return (
            complex128
            if complex128 in (first, second) or float64 in (first, second)
            else (complex64)
        )
    raise _refusal(first, second, what)


def real_of(dtype: DType) -> DType:
    """Return the type of a complex type's parts."""
    return {complex64: float32, complex128: float64, weak_complex: weak_float}.get(dtype, dtype)


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if dtype.kind == "i":
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def rounded(number: float, dtype: DType) -> float:
    """Round a number to half precision, ties to even; what is too large becomes infinite."""
    if dtype is float16:
        try:
            return float(struct.unpack("<e", struct.pack("<e", number))[0])
        except OverflowError:
            return math.copysign(math.inf, number)
    fraction, exponent = math.frexp(number)
    if not math.isfinite(number) or number == 0:
        return number
    # bfloat16 has 8 bits of precision, fewer below 2**-126.
    step = max(exponent, -125) - 8
    value = math.ldexp(round(math.ldexp(fraction, exponent - step)), step)
    return value if abs(value) < 2.0**128 else math.copysign(math.inf, number)


def unsigned_of(dtype: DType) -> str:
    """Return the C++ type in which overflow of an integer type is defined."""
    return next(other.compute for other in _UNSIGNED if other.bits == max(dtype.bits, 32))


def _promote_weak(first: DType, second: DType, what: str) -> DType:
    if "b" in (first.kind, second.kind):
        raise _refusal(first, second, what)
    return max(first, second, key=lambda dtype: dtype.number)


def _promote_scalar(array: DType, scalar: DType, what: str) -> DType:
    allowed = {"b": "b", "i": "iu", "f": "fc", "c": "fc"}[scalar.kind]
    if scalar.kind == "i":
        allowed = "iufc"
    if array.kind not in allowed:
        raise _refusal(array, scalar, what)
    if scalar.kind == "c" and array.kind == "f":
        # The complex type of the same precision; there is none of half precision.
        return complex128 if array == float64 else complex64
    return array


def _refusal(first: DType, second: DType, what: str) -> TypeError:
    a, b = _KIND_NAMES[first.kind], _KIND_NAMES[second.kind]
    why = f"{a} and {b} types" if a != b else "these types"
    return TypeError(
        f"{what}: {first.name} and {second.name} do not promote (the array API standard leaves "
        f"mixing {why} undefined): cast one of them, as in ew.astype(x, ew.float32)"
    )
