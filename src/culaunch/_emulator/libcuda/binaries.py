"""What nvcc's code tells the runtime: the images of a program, its kernels and its variables."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any, NamedTuple

from culaunch._emulator.driver.c_types import LaunchConfig
from culaunch._emulator.driver.state import Refusal
from culaunch._emulator.fault import INVALID_VALUE, Fault
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.runtime import (
    INVALID_CONFIGURATION,
    INVALID_FUNCTION,
    INVALID_SYMBOL,
    RuntimeFunctions,
)


class _Image:
    """An image, which is loaded when a kernel or a variable of it is first used."""

    def __init__(self, wrapper: int) -> None:
        self.wrapper = wrapper
        self.library = 0
        self.managed: dict[int, bytes] = {}  # where the program keeps the address -> the variable


class _Named(NamedTuple):
    """A kernel or a variable: the image that it is in, and its name there."""

    image: _Image
    name: bytes


class _Thread(threading.local):
    def __init__(self) -> None:
        self.configurations: list[tuple[Any, ...]] = []


class BinaryFunctions(RuntimeFunctions):
    """The functions ``__cuda...``, and those that take a kernel or a variable of the program.

    A method ``nvccX`` is the function ``__cudaX``.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        self._images: dict[int, _Image] = {}
        self._named: dict[int, _Named] = {}
        self._launching = _Thread()

    @takes("p", result=ctypes.c_void_p)
    def nvccRegisterFatBinary(self, wrapper: int) -> int:
        image = _Image(wrapper)
        handle = self.add(image)
        self._images[handle] = image
        return handle

    @takes("p", result=None)
    def nvccRegisterFatBinaryEnd(self, handle: int) -> None:
        """Do nothing: an image is loaded when it is used."""

    @takes("p", result=None)
    def nvccUnregisterFatBinary(self, handle: int) -> None:
        image = self._images.pop(handle)
        self._named = {key: one for key, one in self._named.items() if one.image is not image}
        if image.library:
            self.cuLibraryUnload(image.library)

    @takes("p p p s", result=None)
    def nvccRegisterFunction(self, handle: int, host: int, device: int, name: bytes) -> None:
        self._named[host] = _Named(self._images[handle], name)

    @takes("p p p s", result=None)
    def nvccRegisterVar(self, handle: int, host: int, device: int, name: bytes) -> None:
        self._named[host] = _Named(self._images[handle], name)

    @takes("p p p s", result=None)
    def nvccRegisterManagedVar(self, handle: int, place: int, device: int, name: bytes) -> None:
        self._images[handle].managed[place] = name

    @takes("p", result=ctypes.c_byte)
    def nvccInitModule(self, handle: int) -> int:
        self._load(self._images[handle])
        return 1

    @takes("d d z p", result=ctypes.c_uint)
    def nvccPushCallConfiguration(self, grid: Any, block: Any, shared: int, stream: int) -> int:
        self._launching.configurations.append((tuple(grid), tuple(block), shared, stream or 0))
        return 0

    @takes("p p *z *p")
    def nvccPopCallConfiguration(self, grid: int, block: int, shared: Any, stream: Any) -> None:
        *extents, shared[0], stream[0] = self._launching.configurations.pop()
        for out, values in zip((grid, block), extents, strict=True):
            (ctypes.c_uint * 3).from_address(out)[:] = values

    def _load(self, image: _Image) -> int:
        if not image.library:
            out = (ctypes.c_void_p * 1)()
            self.cuLibraryLoadData(out, image.wrapper, None, None, 0, None, None, 0)
            image.library = out[0] or 0
            for place, name in image.managed.items():
                address = self._library(image.library).address(name.decode())
                ctypes.c_void_p.from_address(place).value = address
        return image.library

    # -- kernels ---------------------------------------------------------------------------------

    def _kernel_of(self, function: int, code: int = INVALID_FUNCTION) -> int:
        named = self._named.get(function)
        if named is None:
            if function in self.kernels.values():  # a cudaKernel_t, from cudaLibraryGetKernel
                return function
            raise Refusal(code, f"{function or 0:#x} is not a kernel of the program")
        return self._kernel(self._load(named.image), named.name.decode())

    @takes("p d d *p z p")
    def cudaLaunchKernel(self, function: int, *given: Any) -> None:
        grid, block, params, shared, stream = given
        config = LaunchConfig(tuple(grid), tuple(block), shared, stream)
        self.cudaLaunchKernelExC(ctypes.pointer(config), function, params)

    @takes("p d d *p z p")
    def cudaLaunchCooperativeKernel(self, function: int, *given: Any) -> None:
        grid, block, params, shared, stream = given
        shape = (*grid, *block, shared, stream, params)
        self.cuLaunchCooperativeKernel(self._kernel_of(function), *shape)

    @takes("*l p *p")
    def cudaLaunchKernelExC(self, config: Any, function: int, params: Any) -> None:
        # cudaLaunchConfig_t is CUlaunchConfig with a size of 64 bits.
        kernel = self._kernel_of(function)
        try:
            self.cuLaunchKernelEx(config, kernel, params, None)
        except Fault as fault:
            if fault.code == INVALID_VALUE:
                fault.code = INVALID_CONFIGURATION
            raise

    @takes("*p p")
    def nvccGetKernel(self, out: Any, function: int) -> None:
        out[0] = function

    @takes("p p")
    def cudaFuncGetAttributes(self, out: int, function: int) -> None:
        kernel, value = self._kernel_of(function), (ctypes.c_int * 1)()
        values = []
        for attribute in (1, 2, 3, 0, 4, 5, 6, 7, 8, 9):  # cudaFuncAttributes has another order
            self.cuKernelGetAttribute(value, attribute, kernel, 0)
            values.append(value[0])
        data = struct.pack("QQQ7i", *values)
        ctypes.memmove(out, data, len(data))

    @takes("p i i")
    def cudaFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:
        self.cuKernelSetAttribute(attribute, value, self._kernel_of(function), 0)

    @takes("p i i i")
    def cudaKernelSetAttributeForDevice(self, kernel: int, *given: int) -> None:
        attribute, value, device = given
        self.cuKernelSetAttribute(attribute, value, kernel, device)

    @takes("*i p i z")
    def cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        self, out: Any, function: int, threads: int, shared: int
    ) -> None:
        kernel = self._kernel_of(function)
        self.cuOccupancyMaxActiveBlocksPerMultiprocessor(out, kernel, threads, shared)

    @takes("*i p i z u")
    def cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(self, *given: Any) -> None:
        self.cudaOccupancyMaxActiveBlocksPerMultiprocessor(*given[:-1])

    @takes("*i p *l")
    def cudaOccupancyMaxActiveClusters(self, out: Any, function: int, config: Any) -> None:
        self.cuOccupancyMaxActiveClusters(out, self._kernel_of(function), config)

    @takes("*i p *l")
    def cudaOccupancyMaxPotentialClusterSize(self, out: Any, function: int, config: Any) -> None:
        self.cuOccupancyMaxPotentialClusterSize(out, self._kernel_of(function), config)

    # -- variables -------------------------------------------------------------------------------

    @takes("*q p")
    def cudaGetSymbolAddress(self, out: Any, variable: int) -> None:
        out[0] = self._variable(variable)[0]

    @takes("*z p")
    def cudaGetSymbolSize(self, out: Any, variable: int) -> None:
        out[0] = self._variable(variable)[1]

    def _variable(self, variable: int) -> tuple[int, int]:
        named = self._named.get(variable)
        if named is None:
            raise Refusal(INVALID_SYMBOL, f"{variable or 0:#x} is not a variable of the program")
        address, size = (ctypes.c_ulonglong * 1)(), (ctypes.c_size_t * 1)()
        self.cuLibraryGetGlobal(address, size, self._load(named.image), named.name)
        return address[0], size[0]

    @takes("p p z z i p")
    def cudaMemcpyToSymbolAsync(self, variable: int, source: int, *given: Any) -> None:
        size, offset, kind, stream = given
        self.cudaMemcpyAsync(self._variable(variable)[0] + offset, source, size, kind, stream)

    @takes("p p z z i p")
    def cudaMemcpyFromSymbolAsync(self, target: int, variable: int, *given: Any) -> None:
        size, offset, kind, stream = given
        self.cudaMemcpyAsync(target, self._variable(variable)[0] + offset, size, kind, stream)
