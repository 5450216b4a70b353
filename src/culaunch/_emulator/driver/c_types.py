"""C types of the driver API (cuda.h) and the signatures of the functions in the table."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import Result
from culaunch._core import NUMBERS, Driver

if TYPE_CHECKING:
    from collections.abc import Iterator

# CUDA 13.0, in cuDriverGetVersion's form.
DRIVER_VERSION = 13000

# The driver's text for each result.
ERRORS: dict[int, str] = {
    Result.SUCCESS: "no error",
    Result.INVALID_VALUE: "invalid argument",
    Result.OUT_OF_MEMORY: "out of memory",
    Result.NOT_INITIALIZED: "initialization error",
    Result.INVALID_DEVICE: "invalid device ordinal",
    Result.INVALID_IMAGE: "device kernel image is invalid",
    Result.INVALID_CONTEXT: "invalid device context",
    Result.NO_BINARY_FOR_GPU: "no kernel image is available for execution on the device",
    Result.INVALID_PTX: "a PTX JIT compilation failed",
    Result.UNSUPPORTED_PTX_VERSION: "the provided PTX was compiled with an unsupported toolchain",
    Result.FILE_NOT_FOUND: "file not found",
    Result.INVALID_HANDLE: "invalid resource handle",
    Result.NOT_FOUND: "named symbol not found",
    Result.NOT_READY: "device not ready",
    Result.ILLEGAL_ADDRESS: "an illegal memory access was encountered",
    Result.LAUNCH_OUT_OF_RESOURCES: "too many resources requested for launch",
    Result.LAUNCH_TIMEOUT: "the launch timed out and was terminated",
    Result.ASSERT: "device-side assert triggered",
    Result.HARDWARE_STACK_ERROR: "hardware stack error",
    Result.ILLEGAL_INSTRUCTION: "an illegal instruction was encountered",
    Result.MISALIGNED_ADDRESS: "misaligned address",
    Result.INVALID_ADDRESS_SPACE: "operation not supported on global/shared address space",
    Result.INVALID_PC: "invalid program counter",
    Result.LAUNCH_FAILED: "unspecified launch failure",
    Result.COOPERATIVE_LAUNCH_TOO_LARGE: "too many blocks in cooperative launch",
    Result.NOT_SUPPORTED: "operation not supported",
    Result.INVALID_CLUSTER_SIZE: "cluster misconfiguration",
    Result.UNKNOWN: "unknown error",
}


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``; the value is a union of 64 bytes."""

    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_char * 4), ("value", ctypes.c_ubyte * 64))


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    )


class Dim3(ctypes.Structure):
    """``dim3`` of the runtime."""

    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y, self.z))


class Extent(ctypes.Structure):
    """``cudaExtent`` of the runtime."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in ("width", "height", "depth"))

    def __iter__(self) -> Iterator[int]:
        return iter((self.width, self.height, self.depth))


# The words of Driver.prototypes(), and the runtime's structures.
_VALUES: dict[str, Any] = {
    "d": Dim3,
    "e": Extent,
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "b": ctypes.c_ubyte,
    "h": ctypes.c_ushort,
    "f": ctypes.c_float,
    "z": ctypes.c_size_t,
    "q": ctypes.c_ulonglong,
    "s": ctypes.c_char_p,
    "p": ctypes.c_void_p,
    "l": LaunchConfig,
}


def _parameter(word: str) -> Any:
    if word == "*s":
        # Texts are returned by address: ctypes would free a copy that it makes of bytes.
        return ctypes.POINTER(ctypes.c_void_p)
    return ctypes.POINTER(_parameter(word[1:])) if word.startswith("*") else _VALUES[word]


def prototype(words: tuple[str, ...], result: Any = ctypes.c_int) -> Any:
    """Return the type of a function with these parameters."""
    return ctypes.CFUNCTYPE(result, *map(_parameter, words))


PROTOTYPES = {name: prototype(words) for name, words in Driver.prototypes().items()}

# The arguments of note_array.
NOTE_ARRAY, NOTE_READ_ONLY = NUMBERS["Note"]["ARRAY"], NUMBERS["Note"]["READ_ONLY_ARRAY"]
NOTE_LAUNCH, NOTE_FUNCTION = NUMBERS["Note"]["LAUNCH"], NUMBERS["Note"]["FUNCTION"]
NOTE_STORAGE = NUMBERS["Note"]["STORAGE"]
NOTE_READ_ONLY_STORAGE = NUMBERS["Note"]["READ_ONLY_STORAGE"]
NoteArray = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
