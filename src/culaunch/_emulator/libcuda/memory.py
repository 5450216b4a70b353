"""Functions for memory that programs allocate, register, copy and ask about."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.graph_nodes import CopyParams
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.fault import INVALID_VALUE, NOT_FOUND
from culaunch._emulator.libcuda.c_function import takes

# CUmemorytype, and CUpointer_attribute with the C types of the values.
_HOST, _DEVICE = 1, 2
_ATTRIBUTES: dict[int, tuple[str, Any]] = {
    1: ("context", ctypes.c_void_p),
    2: ("kind", ctypes.c_uint),
    3: ("address", ctypes.c_void_p),
    4: ("address", ctypes.c_void_p),
    7: ("base", ctypes.c_ulonglong),
    9: ("ordinal", ctypes.c_int),
    11: ("base", ctypes.c_void_p),
    12: ("size", ctypes.c_size_t),
}


class _Copy2D(ctypes.Structure):
    """``CUDA_MEMCPY2D``: the source and the target, with the width and the height after both."""

    _fields_ = (
        *(
            (f"{side}_{name}", kind)
            for side in ("source", "target")
            for name, kind in (
                ("x", ctypes.c_size_t),
                ("y", ctypes.c_size_t),
                ("memory_type", ctypes.c_uint),
                ("host", ctypes.c_void_p),
                ("device", ctypes.c_ulonglong),
                ("array", ctypes.c_void_p),
                ("pitch", ctypes.c_size_t),
            )
        ),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )


class ProgramMemoryFunctions(EmulatedDriver):
    """The functions ``cuMem...`` that culaunch itself does not use.

    Every copy is complete when it returns.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._host: set[int] = set()  # allocations and registrations that the host may touch

    def cuMemHostAlloc(self, out: Any, size: int, flags: int) -> None:
        super().cuMemHostAlloc(out, size, flags)
        self._host.add(out[0])

    @takes("*q *z z z u")
    def cuMemAllocPitch(self, out: Any, pitch: Any, width: int, height: int, element: int) -> None:
        pitch[0] = -(-width // 512) * 512
        self.cuMemAlloc(out, pitch[0] * height)

    def cuMemFree(self, address: int) -> None:
        super().cuMemFree(address)
        self._host.discard(address)

    @takes("p z u")
    def cuMemHostRegister(self, address: int, size: int, flags: int) -> None:
        self.require_context()
        if not address or not size or self._range(address):
            raise Refusal(INVALID_VALUE, f"{address or 0:#x} cannot be registered")
        self.device.register(address, size)
        self._host.add(address)

    @takes("p")
    def cuMemHostUnregister(self, address: int) -> None:
        if address not in self._host:
            raise Refusal(INVALID_VALUE, f"{address or 0:#x} is not registered")
        self.cuMemFree(address)

    @takes("*q p u")
    def cuMemHostGetDevicePointer(self, out: Any, address: int, flags: int) -> None:
        self._require_range(address)
        out[0] = address

    @takes("*u p")
    def cuMemHostGetFlags(self, out: Any, address: int) -> None:
        self._require_range(address)
        out[0] = 2  # CU_MEMHOSTALLOC_DEVICEMAP

    @takes("*q *z q")
    def cuMemGetAddressRange(self, base: Any, size: Any, address: int) -> None:
        found = self._range(address)
        if found is None:
            raise Refusal(NOT_FOUND, f"{address:#x} is not in an allocation")
        for out, value in zip((base, size), found, strict=True):
            if out:
                out[0] = value

    def _range(self, address: int | None) -> tuple[int, int] | None:
        """Return the allocation or variable that an address is in, and its size."""
        for base, size in self.device.ranges:
            if base <= (address or 0) < base + size:
                return base, size
        for module in self.modules.copy().values():
            for base, end in zip(*module.limits, strict=True):
                if base <= (address or 0) < end:
                    return base, end - base
        return None

    def _require_range(self, address: int | None) -> tuple[int, int]:
        found = self._range(address)
        if found is None:
            raise Refusal(INVALID_VALUE, f"{address or 0:#x} is not memory of the driver")
        return found

    def cuPointerGetAttribute(self, out: int, attribute: int, address: int) -> None:
        base, size = self._require_range(address)
        if attribute not in _ATTRIBUTES:
            raise Refusal(INVALID_VALUE, f"pointer attribute {attribute} is not emulated")
        name, kind = _ATTRIBUTES[attribute]
        values: dict[str, int] = {
            "context": self.context_handle,
            "kind": _HOST if base in self._host else _DEVICE,
            "address": address,
            "base": base,
            "ordinal": 0,
            "size": size,
        }
        kind.from_address(out).value = values[name]

    @takes("u *i *p q")
    def cuPointerGetAttributes(self, n: int, attributes: Any, outs: Any, address: int) -> None:
        # An unknown address is an answer: zeros, as from a GPU's driver for memory of the host.
        is_known = self._range(address) is not None
        for i in range(n):
            if is_known:
                self.cuPointerGetAttribute(outs[i], attributes[i], address)
            elif attributes[i] in _ATTRIBUTES:
                _ATTRIBUTES[attributes[i]][1].from_address(outs[i]).value = 0

    # -- copies ----------------------------------------------------------------------------------

    def cuMemcpyAsync(self, target: int, source: int, size: int, stream: int) -> None:
        # With unified addresses either side may be memory of the host, which has no record.
        self.require_stream(stream)
        self.require_context()
        for address in (target, source):
            if self._range(address):
                self._require_memory(address, size, stream)
        ctypes.memmove(target, source, size)

    @takes("q q z p")
    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._require_memory(target, size, stream)
        self._require_memory(source, size, stream)
        ctypes.memmove(target, source, size)

    @takes("q p q p z p")
    def cuMemcpyPeerAsync(self, target: int, to: int, source: int, *given: Any) -> None:
        self.cuMemcpyDtoDAsync(target, source, *given[1:])  # all contexts are one device's

    @takes("p p")
    def cuMemcpy2DAsync(self, copy: int, stream: int) -> None:
        given, full = _Copy2D.from_address(copy), CopyParams(depth=1)
        full.width, full.height = given.width, given.height
        for side in ("source", "target"):
            for name in ("x", "y", "memory_type", "host", "device", "array", "pitch"):
                setattr(getattr(full, side), name, getattr(given, f"{side}_{name}"))
        self.cuMemcpy3DAsync(ctypes.addressof(full), stream)

    # -- fills -----------------------------------------------------------------------------------

    @takes("q z b z z p")
    def cuMemsetD2D8Async(
        self, target: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> None:
        for row in range(height):
            self.cuMemsetD8Async(target + row * pitch, value, width, stream)
