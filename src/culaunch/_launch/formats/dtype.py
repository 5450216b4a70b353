"""Element types: one table, with the extension's numbers, for functions and fused kernels."""

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
        """The size of an element in bytes; for 4-bit numbers, the size of two of them."""
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


# In native calls, a scalar's number is this plus the number of its element type. Python's own
# numbers start at FIRST_WEAK.
FIRST_SCALAR = NUMBERS["operands"]["FIRST_SCALAR"]
FIRST_WEAK = NUMBERS["operands"]["FIRST_WEAK"]

# The C++ names of the types. CUDA has no names for AMD's two types.
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
# All others are real: floating-point types have a code for each kind.
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

# The types of Python's scalars. Fused functions compute them in C++'s widest types.
_WEAK = NUMBERS["operands"]
weak_bool = DType("Python bool", _WEAK["WEAK_BOOL"], TypeCode.BOOL, 8, "b", "bool")
weak_int = DType("Python int", _WEAK["WEAK_INT"], TypeCode.INT, 64, "i", "long long")
weak_float = DType("Python float", _WEAK["WEAK_FLOAT"], TypeCode.FLOAT, 64, "f", "double")
weak_complex = DType("Python complex", _WEAK["WEAK_COMPLEX"], TypeCode.COMPLEX, 128, "c", "double2")
WEAK = {bool: weak_bool, int: weak_int, float: weak_float, complex: weak_complex}
_WEAK_TYPES = {dtype.number: dtype for dtype in WEAK.values()}


def operand_type(number: int) -> DType:
    """Return the element type for an operand's number, of an array or a scalar."""
    return _WEAK_TYPES[number] if number >= FIRST_WEAK else DTYPES[number % FIRST_SCALAR]


def as_dtype(what: object) -> DType:
    """Return the element type for a name, a framework's type, or one of culaunch's own.

    Raise TypeError if there is none.
    """
    found = find_dtype(what)
    if found is None:
        raise TypeError(f"dtype must be one of {', '.join(BY_NAME)} (got {spell(what)})")
    return found


def find_dtype(what: object) -> DType | None:
    """Return the element type for an object, or None."""
    if isinstance(what, DType):
        return what
    if isinstance(what, str):
        return BY_NAME.get(what)
    # numpy.float32 is a class, and numpy.dtype and torch.dtype print as "float32" and
    # "torch.float32". Nothing else is printed, because it may be large, or not a type.
    if isinstance(what, type):
        return BY_NAME.get(what.__name__) if what.__module__ != "builtins" else None
    if "dtype" not in type(what).__name__.lower():
        return None
    return BY_NAME.get(str(what).rpartition(".")[2])


def from_dlpack(code: int, bits: int) -> DType | None:
    """Return the element type of DLPack's code and bits, or None."""
    return _BY_DLPACK.get((code, bits))
