"""Element types in fused functions: what computes them in C++, and how they promote.

They promote as the array API standard (2024.12) says.
"""

from __future__ import annotations

import math
import struct

from culaunch._base.values import spell
from culaunch._core import NUMBERS
from culaunch._launch.formats import dtype as all_types

DType = all_types.DType
FIRST_SCALAR, FIRST_WEAK = all_types.FIRST_SCALAR, all_types.FIRST_WEAK
# The types that kernels compute with come first in the table of all types.
DTYPES = all_types.DTYPES[: NUMBERS["operands"]["TYPES"]]
BY_NAME = {dtype.name: dtype for dtype in DTYPES}

bool_ = BY_NAME["bool"]
int8 = BY_NAME["int8"]
int16 = BY_NAME["int16"]
int32 = BY_NAME["int32"]
int64 = BY_NAME["int64"]
uint8 = BY_NAME["uint8"]
uint16 = BY_NAME["uint16"]
uint32 = BY_NAME["uint32"]
uint64 = BY_NAME["uint64"]
float16 = BY_NAME["float16"]
bfloat16 = BY_NAME["bfloat16"]
float32 = BY_NAME["float32"]
float64 = BY_NAME["float64"]
complex64 = BY_NAME["complex64"]
complex128 = BY_NAME["complex128"]

# Python scalars: they are cast when they meet an array.
weak_bool, weak_int = all_types.weak_bool, all_types.weak_int
weak_float, weak_complex = all_types.weak_float, all_types.weak_complex
operand_type = all_types.operand_type

# The kernels' own complex types have arithmetic, unlike CUDA's pairs.
_COMPLEX = {64: "complex<float>", 128: "complex<double>"}
_SIGNED = (int8, int16, int32, int64)
_UNSIGNED = (uint8, uint16, uint32, uint64)
_KIND_NAMES = {"b": "bool", "i": "integer", "u": "integer", "f": "real", "c": "complex"}


def as_dtype(what: object) -> DType:
    """Return the element type of a name, a framework's type, or one of ours.

    Raise TypeError if there is none that kernels compute with.
    """
    found = bool_ if what is bool else all_types.find_dtype(what)
    if found is None or found not in DTYPES:
        raise TypeError(f"dtype must be one of {', '.join(BY_NAME)} (got {spell(what)})")
    return found


def storage(dtype: DType) -> str:
    """Return the C++ type of an element in memory."""
    return _COMPLEX[dtype.bits] if dtype.kind == "c" else dtype.spelling


def compute(dtype: DType) -> str:
    """Return the C++ type that an element is computed in."""
    return "float" if dtype.is_half else storage(dtype)


def promote(first: DType, second: DType, what: str) -> DType:
    """Return the common type of two operands of ``what``.

    Raise TypeError if the array API standard defines none; the message says which cast to write.
    """
    if first == second:
        return first
    if first.is_weak and second.is_weak:
        return _promote_weak(first, second, what)
    if first.is_weak or second.is_weak:
        return _promote_scalar(*((second, first) if first.is_weak else (first, second)), what)
    if first.kind == second.kind:
        # Neither holds all numbers of the other, and the standard does not define a common type.
        if {first, second} == {float16, bfloat16}:
            raise _refusal(first, second, what)
        return max(first, second, key=lambda dtype: dtype.number)
    kinds = {first.kind, second.kind}
    if kinds == {"i", "u"}:
        # The signed type that holds both, which does not exist for uint64.
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
    """Round a number to half precision, ties to even. Too large a number becomes infinite."""
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
    return next(other.spelling for other in _UNSIGNED if other.bits == max(dtype.bits, 32))


def _promote_weak(first: DType, second: DType, what: str) -> DType:
    if "b" in (first.kind, second.kind):
        raise _refusal(first, second, what)
    return max(first, second, key=lambda dtype: dtype.number)


def _promote_scalar(array: DType, scalar: DType, what: str) -> DType:
    allowed = {"b": "b", "i": "iu", "f": "fc", "c": "fc"}[scalar.kind]
    # A Python int fits every numeric type, and a float only real and complex types. The array API
    # standard defines this. A type never depends on a scalar's value.
    if scalar.kind == "i":
        allowed = "iufc"
    if array.kind not in allowed:
        raise _refusal(array, scalar, what)
    if scalar.kind == "c" and array.kind == "f":
        # The complex type with the same precision, which half precision lacks.
        return complex128 if array == float64 else complex64
    return array


def _refusal(first: DType, second: DType, what: str) -> TypeError:
    a, b = _KIND_NAMES[first.kind], _KIND_NAMES[second.kind]
    why = f"{a} and {b} types" if a != b else "these types"
    return TypeError(
        f"{what}: {first.name} and {second.name} do not promote (the array API standard leaves "
        f"mixing {why} undefined): cast one of them, as in ew.astype(x, ew.float32)"
    )
