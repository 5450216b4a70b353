"""DLPack's numbers of element types and kinds of memory, from the extension."""

from __future__ import annotations

from culaunch._base.cuda import Number
from culaunch._core import NUMBERS

_CODES = NUMBERS["DLDataTypeCode"]
_DEVICES = NUMBERS["DLDeviceType"]


class TypeCode(Number):
    """DLDataTypeCode: the class of an element."""

    INT = _CODES["INT"]
    UINT = _CODES["UINT"]
    FLOAT = _CODES["FLOAT"]
    BFLOAT = _CODES["BFLOAT"]
    COMPLEX = _CODES["COMPLEX"]
    BOOL = _CODES["BOOL"]
    FLOAT8_E4M3FN = _CODES["FLOAT8_E4M3FN"]
    FLOAT8_E5M2 = _CODES["FLOAT8_E5M2"]
    FLOAT8_E8M0FNU = _CODES["FLOAT8_E8M0FNU"]


class DeviceType(Number):
    """DLDeviceType: the kind of memory."""

    CPU = _DEVICES["CPU"]
    EXT_DEV = _DEVICES["EXT_DEV"]
    CUDA = _DEVICES["CUDA"]
    CUDA_HOST = _DEVICES["CUDA_HOST"]
    CUDA_MANAGED = _DEVICES["CUDA_MANAGED"]
    ROCM = _DEVICES["ROCM"]


# The names of kinds of memory in messages.
_MEMORY = {
    DeviceType.CPU: "the CPU's memory",
    DeviceType.EXT_DEV: "the emulated device's memory",
    DeviceType.CUDA: "a CUDA device",
    DeviceType.CUDA_HOST: "pinned host memory",
    DeviceType.ROCM: "a ROCm device",
}


def memory_name(device_type: int) -> str:
    """Return the name of a device type's memory, for messages."""
    for known, name in _MEMORY.items():
        if known == device_type:
            return name
    return f"memory of DLPack device type {device_type}"
