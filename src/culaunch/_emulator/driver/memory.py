"""The emulated driver's functions for memory, which is the host's."""

from __future__ import annotations

import ctypes
import os
from bisect import bisect_right
from typing import Any

import numpy as np

from culaunch._base.cuda import PointerAttribute, Result
from culaunch._base.values import counted
from culaunch._emulator.driver.c_types import NOTE_FUNCTION, NOTE_LAUNCH
from culaunch._emulator.driver.state import DriverState, Refusal
from culaunch._emulator.fault import INVALID_VALUE, Fault


class MemoryFunctions(DriverState):
    """The functions ``cuMem...`` and ``cuPointer...``, and the news of arrays."""

    # cuThreadExchangeStreamCaptureMode's, relaxed at first; streams capture nothing.
    capture_mode = 0

    def note_array(self, begin: int | None, size: int, note: int) -> None:
        """Learn of an array that a launch will be given (include/culaunch/driver_table.h)."""
        # The notes of one launch come consecutively, in the launching thread. This one begins the
        # sequence.
        if note in (NOTE_LAUNCH, NOTE_FUNCTION):
            self.clear_details()
            self.noted.begin(stay=note == NOTE_FUNCTION)
        elif begin and size:
            self.noted.add(begin, size, note)

    def cuPointerGetAttribute(self, out: int, attribute: int, address: int) -> None:
        # The one attribute that culaunch asks for: whether an address is a device's.
        if attribute != PointerAttribute.DEVICE_ORDINAL or not self._is_allocated(address, 0):
            raise Refusal(INVALID_VALUE, f"{address:#x} is not an address of the device")
        ctypes.c_int.from_address(out).value = 0

    def cuMemAlloc(self, out: Any, size: int) -> None:
        out[0] = self._allocate(size, zeros=False)

    def _allocate(self, size: int, *, zeros: bool) -> int:
        self.require_context()
        if size == 0:
            raise Refusal(INVALID_VALUE, "an allocation of 0 bytes")
        # Without this a system that overcommits would give addresses that kill the process.
        if size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
            raise Refusal(Result.OUT_OF_MEMORY, f"{size} bytes are more than this machine has")
        try:
            return self.device.alloc(size, zeros=zeros)
        except MemoryError:
            raise Refusal(Result.OUT_OF_MEMORY, counted(size, "byte")) from None

    def cuMemFree(self, address: int) -> None:
        # A caller that frees in a destructor cannot retry, so the memory would leak.
        refused = None
        try:
            self.require_context()
        except (Refusal, Fault) as error:  # it is freed in any case
            refused = error
        if address:  # freeing null does nothing
            if not self.device.has(address):
                raise Refusal(INVALID_VALUE, f"{address:#x} is not an allocation")
            self.device.free(address)
        if refused is not None:
            raise refused

    def cuMemAllocAsync(self, out: Any, size: int, stream: int) -> None:
        self.require_stream(stream)
        self.cuMemAlloc(out, size)

    def cuMemFreeAsync(self, address: int, stream: int) -> None:
        self.require_stream(stream)
        self.cuMemFree(address)

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._require_memory(target, size, stream)
        ctypes.memmove(target, source, size)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._require_memory(source, size, stream)
        ctypes.memmove(target, source, size)

    def cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> None:
        self._require_memory(target, size, stream)
        ctypes.memset(target, value, size)

    def cuMemsetD16Async(self, target: int, value: int, count: int, stream: int) -> None:
        self._fill(target, value, 2, 2, count, stream)

    def cuMemsetD32Async(self, target: int, value: int, count: int, stream: int) -> None:
        self._fill(target, value, 4, 4, count, stream)

    def cuMemsetD2D32Async(
        self, target: int, pitch: int, value: int, width: int, height: int, stream: int
    ) -> None:
        for column in range(width):
            self._fill(target + 4 * column, value, 4, pitch, height, stream)

    def _fill(
        self, target: int, value: int, size: int, pitch: int, count: int, stream: int
    ) -> None:
        # Rows are `pitch` bytes apart, and the last one ends with its last element.
        extent = pitch * (count - 1) + size if count else 0
        self._require_memory(target, extent, stream)
        if target % size or pitch % size:
            raise Refusal(INVALID_VALUE, f"{target:#x} is not aligned to {counted(size, 'byte')}")
        if count:
            memory = (ctypes.c_ubyte * extent).from_address(target)
            elements: Any = np.frombuffer(memoryview(memory), f"u{size}")
            elements[:: pitch // size] = value

    def cuMemcpyAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._require_memory(target, size, stream)
        self._require_memory(source, size, stream)
        ctypes.memmove(target, source, size)

    def cuMemGetInfo(self, free: Any, total: Any) -> None:
        self.require_context()
        page = os.sysconf("SC_PAGE_SIZE")
        free[0] = page * os.sysconf("SC_AVPHYS_PAGES")
        total[0] = page * os.sysconf("SC_PHYS_PAGES")

    def cuMemHostAlloc(self, out: Any, size: int, flags: int) -> None:
        out[0] = self._allocate(size, zeros=True)

    def cuMemFreeHost(self, address: int) -> None:
        self.cuMemFree(address)

    def cuMemAllocManaged(self, out: Any, size: int, flags: int) -> None:
        out[0] = self._allocate(size, zeros=True)

    def _require_memory(self, address: int, size: int, stream: int) -> None:
        self.require_stream(stream)
        self.require_context()
        # An empty array may have any address.
        if size and not self._is_allocated(address, size):
            raise Refusal(INVALID_VALUE, f"{size} bytes at {address:#x} are not in an allocation")

    def _is_allocated(self, address: int, size: int) -> bool:
        end = address + size
        # The whole access must lie in one allocation, as on a device.
        if any(base <= address and end <= base + n for base, n in self.device.ranges):
            return True
        for starts, ends in (module.limits for module in self.modules.copy().values()):
            index = bisect_right(starts, address) - 1
            if index >= 0 and end <= ends[index]:
                return True
        return False
