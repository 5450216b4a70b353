"""Classifies an argument in a body: selects its row in the rules of a launch."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from culaunch._function.arrays.array import StandIn
from culaunch._function.arrays.pointers import Pointer
from culaunch._function.arrays.tensor_maps import TensorMapStandIn
from culaunch._function.symbolic.numbers import SymBool, SymFloat, SymInt

_CTYPES = {
    **dict.fromkeys("bBhHiIlLqQ", "integer"),
    **dict.fromkeys("fd", "floating"),
    **dict.fromkeys("PzZ", "address"),
    "?": "bool_",
}
_NUMPY = {
    "i": "integer", "u": "integer", "f": "floating", "b": "bool_", "c": "complex",
    "V": "structure",
}  # fmt: skip
STRUCTURES = (ctypes.Structure, ctypes.Union, ctypes.Array)


def argument_class(value: Any) -> str | None:
    """Return an object's row in the extension's rules of a launch."""
    kind = type(value)
    # Test the exact types first, as the extension does. Nearly every argument has one of these, or
    # is an array.
    found = _PLAIN.get(kind)
    if found is not None:
        return found
    if isinstance(value, (StandIn,)):
        return "array"
    if isinstance(value, Pointer):
        return "address"
    if isinstance(value, (TensorMapStandIn, *STRUCTURES)):
        return "structure"
    code = getattr(kind, "_type_", None)
    if isinstance(code, str):
        return _CTYPES.get(code)
    # A caller that passes a NumPy scalar has already imported NumPy, so do not import it here.
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        if value.dtype.names or value.dtype.kind != "V":
            return _NUMPY.get(value.dtype.kind)
        return "floating"  # of ml_dtypes
    # Subclasses of int: members of an enum.
    if isinstance(value, int):
        return "IntEnum"
    if hasattr(kind, "__dlpack__") or hasattr(value, "__cuda_array_interface__"):
        return "array"
    return None


_PLAIN = {
    int: "int", SymInt: "int", float: "float", SymFloat: "float", bool: "bool", SymBool: "bool",
    type(None): "None",
}  # fmt: skip
