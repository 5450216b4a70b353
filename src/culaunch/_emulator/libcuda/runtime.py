"""CUDA's runtime over the driver functions: devices, memory, errors, and calls that pass on."""

from __future__ import annotations

import ctypes
import platform
import re
import struct
import threading
from typing import Any

from culaunch._base.cuda import DeviceAttribute, Result
from culaunch._emulator.driver.c_types import ERRORS
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.contexts import ContextFunctions
from culaunch._emulator.libcuda.linking import LinkFunctions
from culaunch._emulator.libcuda.pools import PoolFunctions

# The runtime's numbers that the driver does not have. All other codes are the same.
INVALID_CONFIGURATION, INVALID_SYMBOL, INVALID_FUNCTION = 9, 13, 98
_TEXTS = {
    INVALID_CONFIGURATION: "invalid configuration argument",
    INVALID_SYMBOL: "invalid device symbol",
    INVALID_FUNCTION: "invalid device function",
}
_NAMES = {
    0: "cudaSuccess", 1: "cudaErrorInvalidValue", 2: "cudaErrorMemoryAllocation",
    9: "cudaErrorInvalidConfiguration", 13: "cudaErrorInvalidSymbol",
    98: "cudaErrorInvalidDeviceFunction", 101: "cudaErrorInvalidDevice",
    209: "cudaErrorNoKernelImageForDevice", 218: "cudaErrorInvalidPtx",
    400: "cudaErrorInvalidResourceHandle", 700: "cudaErrorIllegalAddress",
    701: "cudaErrorLaunchOutOfResources", 702: "cudaErrorLaunchTimeout", 710: "cudaErrorAssert",
    715: "cudaErrorIllegalInstruction", 716: "cudaErrorMisalignedAddress",
    719: "cudaErrorLaunchFailure", 720: "cudaErrorCooperativeLaunchTooLarge",
    801: "cudaErrorNotSupported", 999: "cudaErrorUnknown",
}  # fmt: skip
# The members of cudaDeviceProp that are attributes of the device: offset, format, attribute.
_PROPERTIES = (
    (296, "Q", DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK),
    (304, "I", DeviceAttribute.MAX_REGISTERS_PER_BLOCK),
    (308, "I", DeviceAttribute.WARP_SIZE),
    (320, "I", DeviceAttribute.MAX_THREADS_PER_BLOCK),
    *((324 + 4 * i, "I", DeviceAttribute.MAX_BLOCK_DIM_X + i) for i in range(3)),
    *((336 + 4 * i, "I", DeviceAttribute.MAX_GRID_DIM_X + i) for i in range(3)),
    (352, "Q", DeviceAttribute.TOTAL_CONSTANT_MEMORY),
    (360, "I", DeviceAttribute.COMPUTE_CAPABILITY_MAJOR),
    (364, "I", DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
    (384, "I", DeviceAttribute.MULTIPROCESSOR_COUNT),
    (392, "I", 19),  # canMapHostMemory
    (560, "I", DeviceAttribute.CONCURRENT_KERNELS),
    (588, "I", DeviceAttribute.UNIFIED_ADDRESSING),
    (604, "I", DeviceAttribute.MAX_THREADS_PER_MULTIPROCESSOR),
    (624, "Q", DeviceAttribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    (632, "I", DeviceAttribute.MAX_REGISTERS_PER_MULTIPROCESSOR),
    (636, "I", DeviceAttribute.MANAGED_MEMORY),
    (668, "I", DeviceAttribute.COOPERATIVE_LAUNCH),
    (672, "Q", DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    (688, "I", DeviceAttribute.MAX_BLOCKS_PER_MULTIPROCESSOR),
    (696, "Q", DeviceAttribute.RESERVED_SHARED_MEMORY_PER_BLOCK),
    (748, "I", DeviceAttribute.CLUSTER_LAUNCH),
)
_PROPERTIES_SIZE = 1008


class _Thread(threading.local):
    last_error = 0


class RuntimeFunctions(ContextFunctions, PoolFunctions, LinkFunctions):
    """The functions ``cuda...`` for the device and its memory.

    They keep a thread's last error, and make the primary context current in a thread without one.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._runtime_thread = _Thread()

    def _code_of(self, method: Any, error: BaseException) -> int | BaseException:
        code = super()._code_of(method, error)
        is_kept = re.match("(?!.*LastError)_*cuda", method.__name__) is not None
        if is_kept and isinstance(code, int) and code != Result.NOT_READY:
            self._runtime_thread.last_error = code
        return code

    @takes("")
    def cudaPeekAtLastError(self) -> None:
        if self._runtime_thread.last_error:
            raise Refusal(self._runtime_thread.last_error)

    @takes("")
    def cudaGetLastError(self) -> None:
        code, self._runtime_thread.last_error = self._runtime_thread.last_error, 0
        if code:
            raise Refusal(code)

    @takes("i", result=ctypes.c_void_p)
    def cudaGetErrorName(self, code: int) -> int:
        return self.string(_NAMES.get(code, "unrecognized error code"))

    @takes("i", result=ctypes.c_void_p)
    def cudaGetErrorString(self, code: int) -> int:
        return self.string(_TEXTS.get(code) or ERRORS.get(code, "unrecognized error code"))

    @takes("i")
    def cudaSetDevice(self, device: int) -> None:
        self.require_device(device)

    @takes("p i")
    def cudaGetDeviceProperties(self, out: int, device: int) -> None:
        self.require_device(device)
        ctypes.memset(out, 0, _PROPERTIES_SIZE)
        self.cuDeviceGetName(out, 256, device)
        total, value = (ctypes.c_size_t * 1)(), (ctypes.c_int * 1)()
        self.cuDeviceTotalMem(total, device)
        fields = [(288, "Q", total[0]), (312, "Q", 2**31 - 1), (368, "Q", 512)]
        for offset, kind, attribute in _PROPERTIES:
            self.cuDeviceGetAttribute(value, attribute, device)
            fields.append((offset, kind, value[0]))
        for offset, kind, number in fields:
            data = struct.pack(kind, number)
            ctypes.memmove(out + offset, data, len(data))

    @takes("p p")
    def cudaPointerGetAttributes(self, out: int, address: int | None) -> None:
        kind = (ctypes.c_uint * 1)()
        on_device = address if address and self._range(address) else 0
        if on_device:
            self.cuPointerGetAttribute(ctypes.addressof(kind), 2, on_device)
        data = struct.pack("IiQQ", kind[0], 0 if on_device else -2, on_device, address or 0)
        ctypes.memmove(out, data, len(data))

    if platform.machine() in ("x86_64", "AMD64"):

        @takes("p i i i i i", result=ctypes.c_void_p)
        def cudaCreateChannelDesc(self, out: int, *numbers: int) -> int:
            """Return a structure, whose place the caller passes first (on AArch64 it does not)."""
            data = struct.pack("5i", *numbers)
            ctypes.memmove(out, data, len(data))
            return out

    # -- memory ----------------------------------------------------------------------------------

    @takes("*q z")
    def cudaMalloc(self, out: Any, size: int) -> None:
        out[0] = 0  # no bytes are no error here
        if size:
            self.cuMemAlloc(out, size)

    @takes("p p z i p")
    def cudaMemcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        copies = {
            1: self.cuMemcpyHtoDAsync,
            2: self.cuMemcpyDtoHAsync,
            3: self.cuMemcpyDtoDAsync,
        }
        if size:
            copies.get(kind, self.cuMemcpyAsync)(target or 0, source or 0, size, stream)

    @takes("p i p i z p")
    def cudaMemcpyPeerAsync(self, target: int, to: int, source: int, *given: int) -> None:
        device, size, stream = given
        self.require_device(to)
        self.require_device(device)
        self.cudaMemcpyAsync(target, source, size, 3, stream)

    @takes("p z p z z z i p")
    def cudaMemcpy2DAsync(self, target: int, pitch: int, source: int, *given: Any) -> None:
        source_pitch, width, height, kind, stream = given
        for row in range(height):
            row_target, row_source = target + row * pitch, source + row * source_pitch
            self.cudaMemcpyAsync(row_target, row_source, width, kind, stream)

    @takes("p i z p")
    def cudaMemsetAsync(self, target: int, value: int, size: int, stream: int) -> None:
        if size:
            self.cuMemsetD8Async(target or 0, value & 255, size, stream)

    @takes("p z i z z p")
    def cudaMemset2DAsync(
        self, target: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> None:
        self.cuMemsetD2D8Async(target, pitch, value & 255, width, height, stream)
