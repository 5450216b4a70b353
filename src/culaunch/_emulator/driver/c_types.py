"""C types of the driver API (cuda.h) and the signatures of the functions in the table."""

from __future__ import annotations

import ctypes
from typing import Any

# CUDA 13.0, as cuDriverGetVersion has it.
DRIVER_VERSION = 13000

# CUresult: name and text.
ERRORS = {
    0: ("CUDA_SUCCESS", "no error"),
    1: ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
    2: ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    3: ("CUDA_ERROR_NOT_INITIALIZED", "initialization error"),
    101: ("CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"),
    200: ("CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"),
    201: ("CUDA_ERROR_INVALID_CONTEXT", "invalid device context"),
    209: (
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "no kernel image is available for execution on the device",
    ),
    218: ("CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"),
    222: (
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        "the provided PTX was compiled with an unsupported toolchain",
    ),
    400: ("CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
    500: ("CUDA_ERROR_NOT_FOUND", "named symbol not found"),
    600: ("CUDA_ERROR_NOT_READY", "device not ready"),
    700: ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    701: ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"),
    702: ("CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"),
    710: ("CUDA_ERROR_ASSERT", "device-side assert triggered"),
    714: ("CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"),
    715: ("CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"),
    716: ("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"),
    717: (
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "operation not supported on global/shared address space",
    ),
    718: ("CUDA_ERROR_INVALID_PC", "invalid program counter"),
    719: ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"),
    720: ("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "too many blocks in cooperative launch"),
    801: ("CUDA_ERROR_NOT_SUPPORTED", "operation not supported"),
    912: ("CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"),
    999: ("CUDA_ERROR_UNKNOWN", "unknown error"),
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


_int, _uint, _size, _handle = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p
_pointer, _address, _text = ctypes.c_void_p, ctypes.c_ulonglong, ctypes.c_char_p
_ints = ctypes.POINTER(ctypes.c_int)
_uints = ctypes.POINTER(ctypes.c_uint)
_sizes = ctypes.POINTER(ctypes.c_size_t)
_handles = ctypes.POINTER(ctypes.c_void_p)
_addresses = ctypes.POINTER(ctypes.c_ulonglong)
_config = ctypes.POINTER(LaunchConfig)

_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "cuInit": (_uint,),
    "cuDriverGetVersion": (_ints,),
    "cuGetErrorName": (_int, _handles),
    "cuGetErrorString": (_int, _handles),
    "cuDeviceGet": (_ints, _int),
    "cuDeviceGetCount": (_ints,),
    "cuDeviceGetName": (_pointer, _int, _int),
    "cuDeviceGetAttribute": (_ints, _int, _int),
    "cuDevicePrimaryCtxRetain": (_handles, _int),
    "cuCtxGetCurrent": (_handles,),
    "cuCtxGetDevice": (_ints,),
    "cuCtxPushCurrent": (_handle,),
    "cuCtxPopCurrent": (_handles,),
    "cuCtxSynchronize": (),
    "cuStreamGetCtx": (_handle, _handles),
    "cuStreamSynchronize": (_handle,),
    "cuStreamCreateWithPriority": (_handles, _uint, _int),
    "cuStreamDestroy": (_handle,),
    "cuThreadExchangeStreamCaptureMode": (_ints,),
    "cuLibraryLoadData": (_handles, _pointer, _pointer, _pointer, _uint, _pointer, _pointer, _uint),
    "cuLibraryUnload": (_handle,),
    "cuLibraryGetKernel": (_handles, _handle, _text),
    "cuLibraryGetKernelCount": (_uints, _handle),
    "cuLibraryEnumerateKernels": (_handles, _uint, _handle),
    "cuLibraryGetGlobal": (_addresses, _sizes, _handle, _text),
    "cuKernelGetName": (_handles, _handle),
    "cuKernelGetFunction": (_handles, _handle),
    "cuKernelGetParamInfo": (_handle, _size, _sizes, _sizes),
    "cuKernelGetAttribute": (_ints, _int, _handle, _int),
    "cuKernelSetAttribute": (_int, _int, _handle, _int),
    "cuFuncLoad": (_handle,),
    "cuLaunchKernelEx": (_config, _handle, _handles, _handles),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (_ints, _handle, _int, _size),
    "cuOccupancyMaxPotentialBlockSize": (_ints, _ints, _handle, _pointer, _size, _int),
    "cuOccupancyMaxPotentialClusterSize": (_ints, _handle, _config),
    "cuOccupancyMaxActiveClusters": (_ints, _handle, _config),
    "cuPointerGetAttribute": (_pointer, _int, _address),
    "cuMemAlloc": (_addresses, _size),
    "cuMemFree": (_address,),
    "cuMemAllocAsync": (_addresses, _size, _handle),
    "cuMemFreeAsync": (_address, _handle),
    "cuMemcpyHtoDAsync": (_address, _pointer, _size, _handle),
    "cuMemcpyDtoHAsync": (_pointer, _address, _size, _handle),
    "cuMemsetD8Async": (_address, ctypes.c_ubyte, _size, _handle),
    "cuMemGetInfo": (_sizes, _sizes),
    "cuCtxGetStreamPriorityRange": (_ints, _ints),
    "cuStreamQuery": (_handle,),
    "cuStreamWaitEvent": (_handle, _handle, _uint),
    "cuEventCreate": (_handles, _uint),
    "cuEventDestroy": (_handle,),
    "cuEventRecord": (_handle, _handle),
    "cuEventQuery": (_handle,),
    "cuEventSynchronize": (_handle,),
    "cuEventElapsedTime": (ctypes.POINTER(ctypes.c_float), _handle, _handle),
    "cuMemcpyAsync": (_address, _address, _size, _handle),
    "cuMemsetD16Async": (_address, ctypes.c_ushort, _size, _handle),
    "cuMemsetD32Async": (_address, _uint, _size, _handle),
    "cuMemsetD2D32Async": (_address, _size, _uint, _size, _size, _handle),
    "cuMemHostAlloc": (_handles, _size, _uint),
    "cuMemFreeHost": (_pointer,),
    "cuMemAllocManaged": (_addresses, _size, _uint),
}
PROTOTYPES = {name: ctypes.CFUNCTYPE(_int, *types) for name, types in _ARGUMENTS.items()}

# include/culaunch/driver_table.h, Note.
NOTE_ARRAY, NOTE_READ_ONLY, NOTE_LAUNCH, NOTE_FUNCTION = range(4)
NoteArray = ctypes.CFUNCTYPE(None, _pointer, _size, _uint)
