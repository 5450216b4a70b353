"""Element types, as a body sees them."""

from __future__ import annotations

from dataclasses import dataclass

from culaunch._base.values import spell


@dataclass(frozen=True, eq=False)
class DType:
    """The element type of an array in a function's body.

    It is equal to its name and to the same type of a framework: ``x.dtype == "float32"``. As text
    it is spelled as C++ does, so that ``kernels[f"scale<{x.dtype}>"]`` finds the kernel.

    Attributes
    ----------
    name : str
        NumPy's name of it, such as ``"float32"``.
    number : int
        What programs know it by.
    code, bits : int
        As DLPack has them.
    kind : str
        ``b``, ``i``, ``u``, ``f`` or ``c``: bool, signed, unsigned, real, complex.
    spelling : str
        Its C++ type, such as ``"__nv_bfloat16"``.
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

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.spelling

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)


_ROWS = (
    ("bool", 6, 8, "b", "bool"),
    ("int8", 0, 8, "i", "signed char"),
    ("int16", 0, 16, "i", "short"),
    ("int32", 0, 32, "i", "int"),
    ("int64", 0, 64, "i", "long long"),
    ("uint8", 1, 8, "u", "unsigned char"),
    ("uint16", 1, 16, "u", "unsigned short"),
    ("uint32", 1, 32, "u", "unsigned int"),
    ("uint64", 1, 64, "u", "unsigned long long"),
    ("float16", 2, 16, "f", "__half"),
    ("bfloat16", 4, 16, "f", "__nv_bfloat16"),
    ("float32", 2, 32, "f", "float"),
    ("float64", 2, 64, "f", "double"),
    ("complex64", 5, 64, "c", "float2"),
    ("complex128", 5, 128, "c", "double2"),
    ("float8_e4m3fn", 10, 8, "f", "__nv_fp8_e4m3"),
    ("float8_e5m2", 12, 8, "f", "__nv_fp8_e5m2"),
    ("float8_e8m0fnu", 14, 8, "f", "__nv_fp8_e8m0"),
    ("float8_e4m3fnuz", 11, 8, "f", "unsigned char"),  # CUDA has no type of its own
    ("float8_e5m2fnuz", 13, 8, "f", "unsigned char"),
    ("float4_e2m1fn_x2", 17, 4, "f", "__nv_fp4x2_e2m1"),  # two in a byte
)
DTYPES = tuple(
    DType(name, number, code, bits, kind, spelling)
    for number, (name, code, bits, kind, spelling) in enumerate(_ROWS)
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
