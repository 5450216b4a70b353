"""Triton's treatment of objects that the native code does not know, queried once per type."""

from __future__ import annotations

import operator
from typing import Any

from culaunch._core import NUMBERS
from culaunch._triton.tensor_descriptor import TensorDescriptor
from culaunch._triton.upstream.target import triton_module

_KINDS = NUMBERS["TritonObjectKind"]

_CONSTANTS = {
    ("triton.language.core", "constexpr"),
    ("triton.runtime.jit", "JITCallable"),
    ("triton.runtime.jit", "JITFunction"),
}
DESCRIPTORS = {
    ("triton.tools.tensor_descriptor", "TensorDescriptor"),
    (TensorDescriptor.__module__, "TensorDescriptor"),
}
# Objects of these types never change, so identity is enough to recognize a constant.
_IMMUTABLE = {("triton.language.core", "dtype"), ("triton.runtime.jit", "JITFunction")}

# Triton's names of PyTorch's element types and its own (triton._utils, type_canonicalisation_dict).
TYPE_NAMES = {
    "bool": "u1", "int1": "u1", "uint1": "u1", "i1": "u1",
    "float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b15": "fp8e4b15",
    "float8_e4m3fn": "fp8e4nv", "float8e4b8": "fp8e4b8", "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2": "fp8e5", "float8e5b16": "fp8e5b16", "float8_e5m2fnuz": "fp8e5b16",
    "half": "fp16", "float16": "fp16", "bfloat16": "bf16", "float": "fp32", "float32": "fp32",
    "double": "fp64", "float64": "fp64", "int8": "i8", "int16": "i16", "int": "i32",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64",
}  # fmt: skip


def classify(kind: type) -> int:
    """Tell how Triton treats objects of a type."""
    names = {(base.__module__, base.__name__) for base in kind.__mro__}
    if names & _CONSTANTS:
        return _KINDS["CONSTEXPR"]
    if names & DESCRIPTORS:
        return _KINDS["DESCRIPTOR"]
    if any(
        module.startswith("triton.experimental.gluon") and name.startswith("TensorDescriptor")
        for module, name in names
    ):
        return _KINDS["LAYOUT"]
    if hasattr(kind, "data_ptr"):
        return _KINDS["TENSOR_LIKE"]
    if issubclass(kind, int):
        return _KINDS["INTEGER"]
    return _KINDS["FLOAT" if issubclass(kind, float) else "UNSUPPORTED"]


def constant(value: object) -> tuple[object, bool]:
    """Return a key that is equal for equal constants of a type, and whether it is immutable."""
    kind = type(value)
    # The type is part of the key, because two named tuples with equal items may have other fields.
    if issubclass(kind, tuple):
        return (kind, tuple(constant(item)[0] for item in value)), False  # type: ignore[attr-defined]
    if kind.__module__ == "triton.language.core" and kind.__name__ == "constexpr":
        return (kind, constant(value.value)[0]), False  # type: ignore[attr-defined]
    if isinstance(value, (float, complex)) or kind.__module__ == "numpy":
        # A NaN equals nothing, and the two zeros are equal but differ.
        return (kind, "repr", repr(value)), kind is float
    try:
        hash(value)
    except TypeError:
        return (kind, "repr", repr(value)), False
    return (kind, value), kind is int or (kind.__module__, kind.__name__) in _IMMUTABLE


def describe_constant(value: Any) -> tuple[str, object]:
    """Return Triton's (type, key) for an object that is always a constant."""
    return ("constexpr", getattr(value, "cache_key", value))


def type_name(dtype: object) -> str:
    """Return Triton's name of an element type of PyTorch, Triton or NumPy."""
    name = str(dtype).rpartition(".")[2]
    return TYPE_NAMES.get(name, name)


def type_in_language(name: str) -> Any:
    """Return the element type of Triton's language for its name in signatures: i32 is int32."""
    if name == "u1":
        return triton_module("language").int1
    full = {"i": "int", "u": "uint"}.get(name[0]) if name[1:].isdigit() else None
    return triton_module("language").dtype(name if full is None else full + name[1:])


class TensorStandIn:
    """Represents an array of another library for Triton's compiler."""

    def __init__(self, dtype: object, *, divisible: bool) -> None:
        self.dtype = dtype
        self._address = 0 if divisible else 8

    def data_ptr(self) -> int:
        """Return an address with the array's alignment."""
        return self._address


def read_tensor(value: Any) -> tuple[int, str, object]:
    """Return the address, Triton's element type, and the array that it wraps, if any."""
    base = getattr(value, "base", None)
    return operator.index(value.data_ptr()), type_name(value.dtype), base


def memory_of(value: Any) -> tuple[int, int]:
    """Return the address and the size in bytes of an object with ``data_ptr()``, or zeros.

    Used only for the emulator, which refuses addresses that it does not know.
    """
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        return int(storage.data_ptr()), int(storage.nbytes())
    if isinstance(getattr(value, "nbytes", None), int):
        return int(value.data_ptr()), value.nbytes
    if hasattr(value, "numel") and hasattr(value, "element_size"):
        return int(value.data_ptr()), int(value.numel()) * int(value.element_size())
    return 0, 0
