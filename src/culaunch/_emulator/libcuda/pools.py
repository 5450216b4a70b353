"""Memory pools: handles with attributes; memory comes from the device and goes back at once."""

from __future__ import annotations

import ctypes
from typing import Any

from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.memory import ProgramMemoryFunctions

_FLAGS, _ATTRIBUTES = (1, 2, 3), range(1, 9)  # CUmemPool_attribute: ints, and numbers of 64 bits


class _Pool:
    """A pool: the attributes that were set."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {1: 1, 2: 1, 3: 1}


class PoolFunctions(ProgramMemoryFunctions):
    """The functions ``cuMemPool...``."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._default_pool = self._pool = self.add(_Pool())

    @takes("*p i")
    def cuDeviceGetDefaultMemPool(self, out: Any, device: int) -> None:
        self.require_device(device)
        out[0] = self._default_pool

    @takes("*p i")
    def cuDeviceGetMemPool(self, out: Any, device: int) -> None:
        self.require_device(device)
        out[0] = self._pool

    @takes("i p")
    def cuDeviceSetMemPool(self, device: int, pool: int) -> None:
        self.require_device(device)
        self.get(pool, _Pool)
        self._pool = pool

    @takes("*p p")
    def cuMemPoolCreate(self, out: Any, properties: int) -> None:
        out[0] = self.add(_Pool())

    @takes("p")
    def cuMemPoolDestroy(self, pool: int) -> None:
        self.get(pool, _Pool)
        if pool == self._default_pool:
            raise Refusal(INVALID_VALUE, "the default pool cannot be destroyed")
        self.remove(pool)
        if pool == self._pool:
            self._pool = self._default_pool

    @takes("p z")
    def cuMemPoolTrimTo(self, pool: int, size: int) -> None:
        self.get(pool, _Pool)

    @takes("p i p")
    def cuMemPoolSetAttribute(self, pool: int, attribute: int, value: int) -> None:
        self.get(pool, _Pool).values[attribute] = _number(attribute, value).value

    @takes("p i p")
    def cuMemPoolGetAttribute(self, pool: int, attribute: int, out: int) -> None:
        _number(attribute, out).value = self.get(pool, _Pool).values.get(attribute, 0)

    @takes("*q z p p")
    def cuMemAllocFromPoolAsync(self, out: Any, size: int, pool: int, stream: int) -> None:
        self.get(pool, _Pool)
        self.cuMemAllocAsync(out, size, stream)


def _number(attribute: int, address: int) -> Any:
    if attribute not in _ATTRIBUTES:
        raise Refusal(INVALID_VALUE, f"there is no attribute {attribute} of memory pools")
    kind = ctypes.c_int if attribute in _FLAGS else ctypes.c_uint64
    return kind.from_address(address)
