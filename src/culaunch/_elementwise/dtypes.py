"""Element types: what they are in C++, and how they promote (array API standard, 2024.12)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from culaunch._base.values import spell


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


FIRST_SCALAR = 32
FIRST_WEAK = 64

bool_ = DType("bool", 0, 6, 8, "b", "bool", "bool")
int8 = DType("int8", 1, 0, 8, "i", "signed char", "signed char")
int16 = DType("int16", 2, 0, 16, "i", "short", "short")
int32 = DType("int32", 3, 0, 32, "i", "int", "int")
int64 = DType("int64", 4, 0, 64, "i", "long long", "long long")
uint8 = DType("uint8", 5, 1, 8, "u", "unsigned char", "unsigned char")
uint16 = DType("uint16", 6, 1, 16, "u", "unsigned short", "unsigned short")
uint32 = DType("uint32", 7, 1, 32, "u", "unsigned int", "unsigned int")
uint64 = DType("uint64", 8, 1, 64, "u", "unsigned long long", "unsigned long long")
float16 = DType("float16", 9, 2, 16, "f", "__half", "float")
bfloat16 = DType("bfloat16", 10, 4, 16, "f", "__nv_bfloat16", "float")
float32 = DType("float32", 11, 2, 32, "f", "float", "float")
float64 = DType("float64", 12, 2, 64, "f", "double", "double")
complex64 = DType("complex64", 13, 5, 64, "c", "complex<float>", "complex<float>")
complex128 = DType("complex128", 14, 5, 128, "c", "complex<double>", "complex<double>")

# Python scalars: values of these types are computed as wide as C++ goes, and cast where they meet
# an array.
weak_bool = DType("Python bool", 64, 6, 8, "b", "bool", "bool")
weak_int = DType("Python int", 65, 0, 64, "i", "long long", "long long")
weak_float = DType("Python float", 66, 2, 64, "f", "double", "double")
weak_complex = DType("Python complex", 67, 5, 128, "c", "complex<double>", "complex<double>")

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
