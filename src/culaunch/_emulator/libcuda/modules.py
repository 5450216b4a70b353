"""Functions for modules in a context, launches and callbacks."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from culaunch._base.cuda import LaunchAttribute as Attribute
from culaunch._base.cuda import Result
from culaunch._emulator.driver.c_types import LaunchAttribute, LaunchConfig
from culaunch._emulator.driver.state import Kernel, Refusal
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.fault import INVALID_VALUE
from culaunch._emulator.libcuda.c_function import takes
from culaunch._emulator.libcuda.relocatable import Wrapper

# CUjit_option, and the words of `extra`.
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6
_END, _BUFFER, _BUFFER_SIZE = 0, 1, 2


class ProgramModuleFunctions(EmulatedDriver):
    """The functions ``cuModule...``, ``cuFunc...`` and ``cuLaunch...``.

    A module is a library, and a function is a kernel: their handles are the same.
    """

    def cuLibraryLoadData(self, out: Any, code: int, *rest: Any) -> None:
        # nvcc's code has a structure around an image, which the driver takes, too.
        image: int | ctypes.Array[ctypes.c_char] = code
        if code and ctypes.c_uint.from_address(code).value == Wrapper.MAGIC:
            image = Wrapper.from_address(code).image(self.device.arch)
        address = image if isinstance(image, int) else ctypes.addressof(image)
        super().cuLibraryLoadData(out, address, *rest)

    @takes("*p p")
    def cuModuleLoadData(self, out: Any, image: int) -> None:
        self.require_context()
        self.cuLibraryLoadData(out, image, None, None, 0, None, None, 0)

    @takes("*p p u *i *p")
    def cuModuleLoadDataEx(
        self, out: Any, image: int, count: int, options: Any, values: Any
    ) -> None:
        try:
            self.cuModuleLoadData(out, image)
        except Refusal as error:
            given = {options[i]: values[i] for i in range(count)}
            size = given.get(_ERROR_LOG_SIZE) or 0
            if size and given.get(_ERROR_LOG):
                text = error.reason.encode()[: size - 1] + b"\0"
                ctypes.memmove(given[_ERROR_LOG], text, len(text))
            raise

    @takes("*p s")
    def cuModuleLoad(self, out: Any, file: bytes) -> None:
        self.cuModuleLoadData(out, self._file(file))

    @takes("*p s *i *p u *i *p u")
    def cuLibraryLoadFromFile(self, out: Any, file: bytes, *options: Any) -> None:
        self.cuLibraryLoadData(out, self._file(file), *options)

    def _file(self, name: bytes) -> int:
        self._image = ctypes.create_string_buffer(self._read(name))  # a load copies it
        return ctypes.addressof(self._image)

    def _read(self, name: bytes) -> bytes:
        try:
            return Path(name.decode()).read_bytes()
        except OSError as error:
            raise Refusal(Result.FILE_NOT_FOUND, str(error)) from None

    @takes("*i")
    def cuModuleGetLoadingMode(self, out: Any) -> None:
        out[0] = 1  # CU_MODULE_EAGER_LOADING

    @takes("*p p")
    def cuLibraryGetModule(self, out: Any, library: int) -> None:
        self._library(library)
        out[0] = library

    @takes("*p p")
    def cuFuncGetModule(self, out: Any, function: int) -> None:
        module = self.get(function, Kernel).module
        out[0] = next(handle for handle, one in self.modules.items() if one is module)

    @takes("p i i")
    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> None:
        self.cuKernelSetAttribute(attribute, value, function, 0)

    # -- launches --------------------------------------------------------------------------------

    def cuLaunchKernelEx(self, config: Any, function: int, params: Any, extra: Any) -> None:
        if not extra:
            super().cuLaunchKernelEx(config, function, params, extra)
            return
        self.require_context_of(config[0].stream)
        kernel: Kernel = self.get(function, Kernel)
        buffer = _buffer(extra)
        if len(buffer) < kernel.info.param_bytes:
            raise Refusal(INVALID_VALUE, f"the buffer has {len(buffer)} bytes of arguments")
        values = buffer[: kernel.info.param_bytes]
        self.launch_kernel(config[0], kernel, values, self.noted.take())

    @takes("p u u u u u u u p *p *p")
    def cuLaunchKernel(self, function: int, *given: Any) -> None:
        *shape, shared, stream, params, extra = given
        config = LaunchConfig(tuple(shape[:3]), tuple(shape[3:]), shared, stream)
        self.cuLaunchKernelEx(ctypes.pointer(config), function, params, extra)

    @takes("p u u u u u u u p *p")
    def cuLaunchCooperativeKernel(self, function: int, *given: Any) -> None:
        *shape, shared, stream, params = given
        attribute = (LaunchAttribute * 1)()
        attribute[0].id, attribute[0].value[0] = Attribute.COOPERATIVE, 1
        config = LaunchConfig(tuple(shape[:3]), tuple(shape[3:]), shared, stream, attribute, 1)
        self.cuLaunchKernelEx(ctypes.pointer(config), function, params, None)

    @takes("p p p")
    def cuLaunchHostFunc(self, stream: int, function: int, data: int) -> None:
        self.require_stream(stream)
        self.require_context()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(data)

    @takes("p p p u")
    def cuStreamAddCallback(self, stream: int | None, call: int, data: int, flags: int) -> None:
        self.require_stream(stream)
        self.require_context()
        kinds = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        ctypes.CFUNCTYPE(None, *kinds)(call)(stream, 0, data)

    # -- occupancy, streams ----------------------------------------------------------------------

    @takes("*i p i z u")
    def cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        self, out: Any, function: int, threads: int, shared: int, flags: int
    ) -> None:
        self.cuOccupancyMaxActiveBlocksPerMultiprocessor(out, function, threads, shared)

    @takes("*i *i p p z i u")
    def cuOccupancyMaxPotentialBlockSizeWithFlags(self, *given: Any) -> None:
        self.cuOccupancyMaxPotentialBlockSize(*given[:-1])

    @takes("p p u")
    def cuEventRecordWithFlags(self, event: int, stream: int, flags: int) -> None:
        self.cuEventRecord(event, stream)


def _buffer(extra: Any) -> bytes:
    """Return the arguments of a launch that are in one buffer."""
    given, i = {}, 0
    while (extra[i] or _END) != _END:
        given[extra[i]] = extra[i + 1]
        i += 2
    if not given.get(_BUFFER) or not given.get(_BUFFER_SIZE):
        raise Refusal(INVALID_VALUE, "extra needs CU_LAUNCH_PARAM_BUFFER_POINTER and ..._SIZE")
    size = ctypes.c_size_t.from_address(given[_BUFFER_SIZE]).value
    return ctypes.string_at(given[_BUFFER], size)
