"""Functions for the device and its contexts, which share all memory."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from culaunch._base.cuda import DeviceAttribute
from culaunch._emulator.driver.state import INVALID_CONTEXT, Context, Refusal
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.libcuda.c_function import takes

# Attributes that only other programs need. Clocks are in kHz: programs divide by them.
_ATTRIBUTES = {
    11: 2**31 - 1,  # the largest pitch
    13: 1_000_000,  # the clock
    14: 512,  # the alignment of textures
    19: 1,  # mapped memory
    36: 1_000_000,  # the clock of memory
    37: 256,  # the width of its bus in bits
    38: 4 << 20,  # the second-level cache
    int(DeviceAttribute.MANAGED_MEMORY): 1,
    89: 1,  # managed memory that the host and a kernel use at once
    99: 1,  # registered memory
}
_BUS = b"0000:00:00.0"
# CUlimit: the size of a stack, of printf's buffer and of the heap, and the depth and the number of
# child launches. Kernels are not held to them.
_LIMITS = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048}


class ContextFunctions(EmulatedDriver):
    """The functions ``cuDevice...`` and ``cuCtx...``."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._limits = dict(_LIMITS)

    def cuDeviceGetAttribute(self, out: Any, attribute: int, device: int) -> None:
        super().cuDeviceGetAttribute(out, attribute, device)
        out[0] = _ATTRIBUTES.get(attribute, out[0])

    @takes("*z i")
    def cuDeviceTotalMem(self, out: Any, device: int) -> None:
        self.require_device(device)
        out[0] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    @takes("*i *i i")
    def cuDeviceComputeCapability(self, major: Any, minor: Any, device: int) -> None:
        self.cuDeviceGetAttribute(major, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR, device)
        self.cuDeviceGetAttribute(minor, DeviceAttribute.COMPUTE_CAPABILITY_MINOR, device)

    @takes("p i")
    def cuDeviceGetUuid(self, out: int, device: int) -> None:
        self.require_device(device)
        ctypes.memmove(out, b"culaunch emulato", 16)

    @takes("p i i")
    def cuDeviceGetPCIBusId(self, out: int, length: int, device: int) -> None:
        self.require_device(device)
        if length <= len(_BUS):
            raise Refusal(INVALID_VALUE, f"the bus id has {len(_BUS) + 1} bytes, not {length}")
        ctypes.memmove(out, _BUS, len(_BUS) + 1)

    @takes("*i s")
    def cuDeviceGetByPCIBusId(self, out: Any, bus: bytes) -> None:
        if bus != _BUS:
            raise Refusal(INVALID_VALUE, f"there is no device {bus.decode()!r}")
        out[0] = 0

    def cuDeviceCanAccessPeer(self, out: Any, device: int, peer: int) -> None:
        self.require_device(device)
        self.require_device(peer)
        out[0] = 0

    @takes("i *u *i")
    def cuDevicePrimaryCtxGetState(self, device: int, flags: Any, is_active: Any) -> None:
        self.require_device(device)
        flags[0], is_active[0] = 0, 1

    @takes("*p u i")
    def cuCtxCreate(self, out: Any, flags: int, device: int) -> None:
        self.require_device(device)
        out[0] = self.add(Context())
        self.cuCtxPushCurrent(out[0])

    @takes("*p p i u i")
    def cuCtxCreate_v3(self, out: Any, affinity: int, n: int, flags: int, device: int) -> None:
        self.cuCtxCreate(out, flags, device)

    @takes("*p p u i")
    def cuCtxCreate_v4(self, out: Any, params: int, flags: int, device: int) -> None:
        self.cuCtxCreate(out, flags, device)

    @takes("p")
    def cuCtxDestroy(self, context: int) -> None:
        self._require(context)
        if context == self.context_handle:
            raise Refusal(INVALID_CONTEXT, "the primary context is released, not destroyed")
        self.remove(context)
        if self.stack[-1:] == [context]:
            del self.stack[-1]

    def cuCtxPushCurrent(self, context: int) -> None:
        self._require(context)
        stack = self.stack
        stack += [context]

    @takes("p")
    def cuCtxSetCurrent(self, context: int | None) -> None:
        if context:
            self._require(context)
        self.stack[-1:] = [context] if context else []

    def _require(self, context: int) -> None:
        try:
            self.get(context, Context)
        except Refusal as error:
            raise Refusal(INVALID_CONTEXT, error.reason) from None

    @takes("p *u")
    def cuCtxGetApiVersion(self, context: int | None, out: Any) -> None:
        out[0] = 3020  # as every driver since CUDA 3.2 answers

    @takes("*u")
    def cuCtxGetFlags(self, out: Any) -> None:
        out[0] = 0

    def cuCtxGetId(self, context: int | None, out: Any) -> None:
        out[0] = context or self.stack[-1]

    @takes("*z i")
    def cuCtxGetLimit(self, out: Any, limit: int) -> None:
        if limit not in self._limits:
            raise Refusal(INVALID_VALUE, f"limit {limit} is not emulated")
        out[0] = self._limits[limit]

    @takes("i z")
    def cuCtxSetLimit(self, limit: int, value: int) -> None:
        self.cuCtxGetLimit([0], limit)
        self._limits[limit] = value

    @takes("*i")
    def cuCtxGetCacheConfig(self, out: Any) -> None:
        out[0] = 0
