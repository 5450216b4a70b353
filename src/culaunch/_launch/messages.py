"""The messages for wrong arguments. The native launcher calls this when it refuses an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from culaunch._base.values import counted, show, type_name
from culaunch._launch.formats.dlpack import DeviceType, TypeCode, memory_name
from culaunch._launch.private_members import core_of, stream_device
from culaunch._launch.signatures.parameter_type import TypeClass
from culaunch._launch.signatures.signature import kind_of

if TYPE_CHECKING:
    from culaunch._core import Launcher
    from culaunch._launch.modules.module import Kernel
    from culaunch._launch.signatures.signature import Parameter

_FLOAT8: dict[int, str] = {
    TypeCode.FLOAT8_E4M3FN: "ml_dtypes.float8_e4m3fn",
    TypeCode.FLOAT8_E5M2: "ml_dtypes.float8_e5m2",
    TypeCode.FLOAT8_E8M0FNU: "ml_dtypes.float8_e8m0fnu",
}
_CODES: dict[int, str] = {
    TypeCode.INT: "int",
    TypeCode.UINT: "uint",
    TypeCode.FLOAT: "float",
    TypeCode.BFLOAT: "bfloat",
    TypeCode.COMPLEX: "complex",
    TypeCode.BOOL: "bool",
}


def raise_argument(
    launcher: Launcher, index: int, value: object, mismatch: str, detail: int, device: int
) -> NoReturn:
    """Raise for the argument ``value`` of parameter ``index``.

    csrc/arguments/convert.h has the list.
    """
    kernel: Kernel = launcher.kernel  # type: ignore[assignment]
    parameter = kernel.signature.parameters[index]
    start = f"argument {index} of {_title(kernel)}, {_describe(parameter)}"
    got = f"(got {show(value)})"
    # One branch for each reason in csrc/arguments/convert.h. The last case is an object of a type
    # that the parameter does not accept.
    if mismatch == "overflow":
        limits = "cannot hold a number this large"
        raise OverflowError(
            f"{start}, {limits if isinstance(value, float) else _range(parameter)} {got}"
        )
    if mismatch == "ambiguous":
        raise TypeError(
            f"{start}, could be float16 or bfloat16, so a float is ambiguous {got}: pass "
            "numpy.float16(x) or ml_dtypes.bfloat16(x), or say the type with "
            'module.kernel(name, signature="..., half")'
        )
    if mismatch == "size":
        raise ValueError(
            f"{start}, must have exactly {counted(parameter.size, 'byte')} (got {show(value)} "
            f"with {detail} "
            "bytes): " + _size_remedy(value, parameter.size)
        )
    if mismatch == "element":
        raise TypeError(
            f"{start}, must be an array of {_element(parameter)} "
            f"(got {show(value)} of {_dtype(detail)}): convert the array, or use a kernel for "
            "its type"
        )
    if mismatch == "memory":
        raise ValueError(
            f"{start}, must be in the memory of the driver in use, "
            f"{core_of(kernel.module).driver.name!r} (got {show(value)} in "
            f"{memory_name(detail)}): " + _how_to_move(kernel)
        )
    if mismatch == "tensor":
        from culaunch._launch.torch.tensor import refusal

        raise TypeError(refusal(f"{start},", value))
    if mismatch == "device":
        _raise_device(launcher, start, value, detail, device)
    if mismatch == "read_only":
        raise TypeError(
            f"{start}, must be writable, but the array is read-only {got}. Pass a writable "
            "array, or declare the parameter a pointer to const (in the kernel, or with "
            'module.kernel(name, signature="const float*, ..."))'
        )
    raise TypeError(
        f"{start}, must be {_accepted(parameter)} {got}{_remedy(value, parameter.size)}"
    )


def _remedy(value: object, size: int) -> str:
    """Return the conversion from the given value to an accepted one, if known."""
    kind = type(value)
    # cuda-python's handles are objects that contain their number.
    if kind.__module__.startswith("cuda.bindings") and hasattr(kind, "__int__"):
        return f": pass int({kind.__name__.lower()})"
    if getattr(value, "shape", None) == () and not _is_numpy_scalar(kind):
        return ": pass array[()], the scalar in it, instead of a 0-dimensional array"
    if getattr(getattr(value, "dtype", None), "names", None) and hasattr(value, "shape"):
        return ": pass array[i], one of its structures"
    if type_name(value) == "numpy.ndarray" and getattr(value, "nbytes", None) == size:
        return (
            f": to pass an array by value, pass its {counted(size, 'byte')} as one structure, "
            f'array.reshape(-1).view("V{size}")[0]'
        )
    return ""


def _is_numpy_scalar(kind: type) -> bool:
    return any((base.__module__, base.__name__) == ("numpy", "generic") for base in kind.__mro__)


def _size_remedy(value: object, size: int) -> str:
    """Explain how to give a NumPy structure the padding of C++."""
    dtype = getattr(value, "dtype", None)
    if getattr(dtype, "names", None):
        import numpy as np

        try:
            if np.dtype(dtype.descr, align=True).itemsize == size:  # type: ignore[union-attr]
                return "make its dtype with align=True, which pads it as C++ does"
        except (TypeError, ValueError):
            pass
    return f"pass an object of {counted(size, 'byte')}"


def raise_count(launcher: Launcher, count: int, keywords: tuple[str, ...] | None) -> NoReturn:
    """Raise for a call with the wrong number of arguments, or with keywords."""
    kernel: Kernel = launcher.kernel  # type: ignore[assignment]
    if keywords:
        raise TypeError(
            f"{_title(kernel)} accepts only positional arguments (got keyword "
            f"{', '.join(keywords)}), because an image has no parameter names"
        )
    expected = len(kernel.signature)
    raise TypeError(
        f"{_title(kernel)} takes {counted(expected, 'argument')} {kernel.signature} (got {count})"
        + _hidden_hint(kernel, expected - count)
    )


def _hidden_hint(kernel: Kernel, missing: int) -> str:
    """Return a hint on the missing arguments if a Triton kernel is launched by hand."""
    # Triton's kernels end in pointers that its own launcher passes. One or two missing arguments of
    # 8 bytes suggest a kernel of this kind.
    last = kernel.signature.parameters[-missing:]
    named = kernel.signature.source in ("name", "user")
    if missing not in (1, 2) or named or any(parameter.size != 8 for parameter in last):
        return ""
    return (
        ". If this is a Triton kernel, its hidden scratch pointers are missing (one since Triton "
        f"3.3, two since 3.5): pass None for {'each' if missing > 1 else 'it'} at the end"
    )


def _raise_device(
    launcher: Launcher, start: str, value: object, detail: int, device: int
) -> NoReturn:
    if device < 0:
        raise ValueError(
            f"{start}, is on device {detail} (got {show(value)}), but the stream belongs to device "
            f"{stream_device(launcher)}: pass a stream of device {detail}"
        )
    raise ValueError(
        f"{start}, is on device {detail} (got {show(value)}), but earlier arguments are on "
        f"device {device}: all arrays of a call must be on one device"
    )


def _title(kernel: Kernel) -> str:
    from culaunch._launch.modules.names import without_parameters

    return without_parameters(kernel.demangled)


def _describe(parameter: Parameter) -> str:
    size = counted(parameter.size, "byte")
    return f"{parameter.type} ({size})" if parameter.type else f"a parameter of {size}"


def _range(parameter: Parameter) -> str:
    kind = kind_of(parameter).type_class
    bits = 8 * parameter.size
    low, high = f"-2^{bits - 1}", f"2^{bits} - 1"
    if kind is TypeClass.SIGNED:
        high = f"2^{bits - 1} - 1"
    elif kind in (TypeClass.UNSIGNED, TypeClass.POINTER):
        low = "0"
    return f"must be from {low} to {high}"


def _accepted(parameter: Parameter) -> str:
    """Describe the values that a parameter accepts, the best first."""
    kind = kind_of(parameter).type_class
    array = "an array (DLPack or __cuda_array_interface__), an address as an int, or None"
    if kind is TypeClass.POINTER:
        return array
    if kind in (TypeClass.SIGNED, TypeClass.UNSIGNED):
        return "an int, or a NumPy or ctypes integer of that size"
    if kind is TypeClass.FLOAT:
        return "a float (2.0, not 2), or a NumPy or ctypes float of that type"
    if kind is TypeClass.BOOL:
        return "a bool, or a NumPy or ctypes bool"
    if kind is TypeClass.FLOAT8:
        return (
            f"an ml_dtypes number of that type, such as {_FLOAT8.get(kind_of(parameter).code)}(2.0)"
        )
    structure = (
        f"a ctypes structure, or a NumPy structured scalar, of {counted(parameter.size, 'byte')}"
    )
    if kind is TypeClass.STRUCTURE:
        return structure
    integer = "an enum.IntEnum, or a NumPy or ctypes integer of that size"
    if kind is TypeClass.NAMED:
        return f"{structure}; if it is an enumeration: {integer}"
    if kind is TypeClass.ENUMERATION:
        return f"an int, {integer}"
    sized = f"a NumPy or ctypes scalar or structure of {counted(parameter.size, 'byte')}"
    return {
        1: f"an int, a bool, or {sized}",
        2: f"an int, or {sized}",
        4: f"an int, a float, or {sized}",
        8: f"{array}, an int, a float, or {sized}",
    }.get(parameter.size, sized)


def _element(parameter: Parameter) -> str:
    kind = kind_of(parameter)
    return f"{_CODES.get(kind.code, f'float8 of DLPack code {kind.code:d}')}{kind.bits}"


def _dtype(packed: int) -> str:
    code, bits, lanes = packed & 0xFF, packed >> 8 & 0xFF, packed >> 16
    name = f"{_CODES.get(code, f'DLPack type code {code}, bits ')}{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


def _how_to_move(kernel: Kernel) -> str:
    if DeviceType.CPU in core_of(kernel.module).driver.device_types:
        return (
            "pass a NumPy array or a CPU tensor, because the emulated device's memory is the host's"
        )
    return "move it with its framework (tensor.cuda()), or with culaunch.to_device(array)"
