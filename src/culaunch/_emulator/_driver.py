"""The driver table of the emulated device: the driver-API functions that culaunch uses."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import threading
import traceback
from typing import TYPE_CHECKING, Any

from culaunch._core import Driver
from culaunch._emulator._control import options_from_text, register
from culaunch._emulator._device import Device
from culaunch._emulator._driver_attributes import device_attribute, kernel_attribute, occupancy
from culaunch._emulator._driver_image import load_ptx
from culaunch._emulator._driver_launch import launch_request
from culaunch._emulator._driver_types import DRIVER_VERSION, ERRORS, PROTOTYPES, NoteArray
from culaunch._emulator._fault import INVALID_VALUE, NOT_FOUND, Fault
from culaunch._errors import CulaunchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._emulator._module import ModuleInstance, PtxKernel

_SUCCESS = 0
_INVALID_CONTEXT = 201
_INVALID_HANDLE = 400
_UNKNOWN = 999
_STICKY = (700, 702, 710, 714, 715, 716, 717, 718, 719)


class Kernel:
    """A kernel of a loaded module; its handle serves as CUkernel and as CUfunction."""

    def __init__(self, instance: ModuleInstance, info: PtxKernel) -> None:
        self.instance = instance
        self.info = info
        # What cuKernelSetAttribute opted in to.
        self.max_dynamic_shared: int | None = None


class EmulatedDriver:
    """The driver API over one emulated device.

    Each ``cu...`` method is one function of the table. It gets what C code passes, returns what it
    found through pointers, and raises :class:`Refusal` (or lets a :class:`Fault` pass) for every
    result but success.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._lock = threading.RLock()
        self._thread = threading.local()
        self._handles: dict[int, Any] = {}
        self._next = itertools.count(0x1000, 0x10)
        self._context = self._handle("context")
        # What cuGetErrorString says besides the usual text; and the strings that it gave.
        self._details: dict[int, str] = {}
        self._strings: dict[tuple[int, str], ctypes.Array[ctypes.c_char]] = {}

    def table(self) -> dict[str, Any]:
        """Give the C functions by name; they live as long as the dict's values."""
        functions: dict[str, Any] = {
            name: prototype(self._guarded(getattr(self, name)))
            for name, prototype in PROTOTYPES.items()
        }
        functions["note_array"] = NoteArray(self._note_array)
        return functions

    def _guarded(self, method: Callable[..., None]) -> Callable[..., int]:
        """Turn what a method raises into a CUresult: nothing may pass into C code."""

        @functools.wraps(method)
        def call(*arguments: Any) -> int:
            try:
                with self._lock:
                    method(*arguments)
            except Refusal as refusal:
                self._details[refusal.code] = refusal.reason
                return refusal.code
            except Fault as fault:
                self._details[fault.code] = str(fault)
                return fault.code
            except Exception:  # noqa: BLE001 - a defect of ours must reach the user as an error
                self._details[_UNKNOWN] = "a defect of the emulator:\n" + traceback.format_exc()
                return _UNKNOWN
            return _SUCCESS

        return call

    def _handle(self, thing: Any) -> int:
        handle = next(self._next)
        self._handles[handle] = thing
        return handle

    def _get(self, handle: int | None, kind: type[Any]) -> Any:
        thing = self._handles.get(handle or 0)
        if not isinstance(thing, kind):
            raise Refusal(_INVALID_HANDLE, f"{handle or 0:#x} is no handle of a {kind.__name__}")
        return thing

    def reset(self) -> None:
        """Forget the device's fault, which no CUDA device can."""
        with self._lock:
            self.device.fault = None
            self._details.clear()

    def _check_fault(self) -> None:
        if self.device.fault is not None:
            raise self.device.fault

    # -- the driver, the device ------------------------------------------------------------------

    def cuInit(self, flags: int) -> None:
        """Nothing to initialise."""

    def cuDriverGetVersion(self, out: Any) -> None:
        out[0] = DRIVER_VERSION

    def cuGetErrorName(self, code: int, out: Any) -> None:
        if code not in ERRORS:
            raise Refusal(INVALID_VALUE)
        out[0] = self._string(code, ERRORS[code][0])

    def cuGetErrorString(self, code: int, out: Any) -> None:
        if code not in ERRORS:
            raise Refusal(INVALID_VALUE)
        detail = self._details.get(code, "")
        out[0] = self._string(code, ERRORS[code][1] + (f": {detail}" if detail else ""))

    def _string(self, code: int, text: str) -> int:
        # C keeps the pointer: the string must stay.
        key = (code, text)
        if key not in self._strings:
            self._strings[key] = ctypes.create_string_buffer(text.encode())
        return ctypes.addressof(self._strings[key])

    def cuDeviceGet(self, out: Any, ordinal: int) -> None:
        self._require_device(ordinal)
        out[0] = ordinal

    def cuDeviceGetCount(self, out: Any) -> None:
        out[0] = 1

    def cuDeviceGetName(self, out: int, length: int, device: int) -> None:
        self._require_device(device)
        name = f"culaunch emulator ({self.device.arch})".encode()[: length - 1] + b"\0"
        ctypes.memmove(out, name, len(name))

    def cuDeviceGetAttribute(self, out: Any, attribute: int, device: int) -> None:
        self._require_device(device)
        out[0] = device_attribute(self.device, attribute)

    def _require_device(self, device: int) -> None:
        if device != 0:
            raise Refusal(101, "the emulator has one device, 0")

    # -- contexts and streams --------------------------------------------------------------------

    @property
    def _stack(self) -> list[int]:
        if not hasattr(self._thread, "stack"):
            self._thread.stack = []
        stack: list[int] = self._thread.stack
        return stack

    def cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> None:
        self._require_device(device)
        out[0] = self._context

    def cuCtxGetCurrent(self, out: Any) -> None:
        out[0] = self._stack[-1] if self._stack else None

    def cuCtxGetDevice(self, out: Any) -> None:
        if not self._stack:
            raise Refusal(_INVALID_CONTEXT)
        out[0] = 0

    def cuCtxPushCurrent(self, context: int) -> None:
        self._stack.append(context)

    def cuCtxPopCurrent(self, out: Any) -> None:
        if not self._stack:
            raise Refusal(_INVALID_CONTEXT)
        out[0] = self._stack.pop()

    def cuCtxSynchronize(self) -> None:
        self._check_fault()

    def cuStreamGetCtx(self, stream: int, out: Any) -> None:
        self._require_stream(stream)
        out[0] = self._context

    def cuStreamSynchronize(self, stream: int) -> None:
        self._require_stream(stream)
        self._check_fault()

    def cuStreamCreateWithPriority(self, out: Any, flags: int, priority: int) -> None:
        out[0] = self._handle(Stream())

    def cuStreamDestroy(self, stream: int) -> None:
        self._get(stream, Stream)
        del self._handles[stream]

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> None:
        """Nothing is ever captured."""

    def _require_stream(self, stream: int | None) -> None:
        if stream not in (None, 0, 1, 2):  # the default streams
            self._get(stream, Stream)

    # -- modules and kernels ---------------------------------------------------------------------

    def cuLibraryLoadData(
        self, out: Any, code: int, jit: Any, values: Any, n: int, a: Any, b: Any, m: int
    ) -> None:
        try:
            module = load_ptx(code, self.device.arch)
            out[0] = self._handle(self.device.load(module))
        except CulaunchError as error:
            raise Refusal(getattr(error, "code", 0) or 218, str(error)) from None

    def cuLibraryUnload(self, library: int) -> None:
        instance = self._library(library)
        del self._handles[library]
        for handle, thing in list(self._handles.items()):
            if isinstance(thing, Kernel) and thing.instance is instance:
                del self._handles[handle]

    def cuLibraryGetKernel(self, out: Any, library: int, name: bytes) -> None:
        instance = self._library(library)
        wanted = name.decode()
        if wanted not in instance.module.kernels:
            raise Refusal(NOT_FOUND)
        out[0] = self._kernel(instance, wanted)

    def _kernel(self, instance: ModuleInstance, name: str) -> int:
        for handle, thing in self._handles.items():
            if isinstance(thing, Kernel) and thing.instance is instance and thing.info.name == name:
                return handle
        return self._handle(Kernel(instance, instance.module.kernel(name)))

    def cuLibraryGetKernelCount(self, out: Any, library: int) -> None:
        out[0] = len(self._library(library).module.kernels)

    def cuLibraryEnumerateKernels(self, out: Any, count: int, library: int) -> None:
        instance = self._library(library)
        for i, name in enumerate(instance.module.kernels[:count]):
            out[i] = self._kernel(instance, name)

    def cuLibraryGetGlobal(self, address: Any, size: Any, library: int, name: bytes) -> None:
        instance = self._library(library)
        try:
            address[0] = instance.address(name.decode())
            size[0] = instance.size(name.decode())
        except KeyError:
            raise Refusal(NOT_FOUND) from None

    def _library(self, handle: int) -> ModuleInstance:
        from culaunch._emulator._module import ModuleInstance

        instance: ModuleInstance = self._get(handle, ModuleInstance)
        return instance

    def cuKernelGetName(self, out: Any, kernel: int) -> None:
        found: Kernel = self._get(kernel, Kernel)
        out[0] = self._string(-1, found.info.name)

    def cuKernelGetFunction(self, out: Any, kernel: int) -> None:
        self._get(kernel, Kernel)
        out[0] = kernel

    def cuKernelGetParamInfo(self, kernel: int, index: int, offset: Any, size: Any) -> None:
        params = self._get(kernel, Kernel).info.params
        if index >= len(params):
            raise Refusal(INVALID_VALUE)
        offset[0] = params[index].offset
        size[0] = params[index].size

    def cuKernelGetAttribute(self, out: Any, attribute: int, kernel: int, device: int) -> None:
        self._require_device(device)
        out[0] = kernel_attribute(self.device, self._get(kernel, Kernel), attribute)

    def cuKernelSetAttribute(self, attribute: int, value: int, kernel: int, device: int) -> None:
        self._require_device(device)
        found: Kernel = self._get(kernel, Kernel)
        if attribute == 8:  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            if not 0 <= value <= self.device.max_shared - found.info.static_shared:
                raise Refusal(INVALID_VALUE)
            found.max_dynamic_shared = value

    def cuFuncLoad(self, function: int) -> None:
        self._get(function, Kernel)

    def cuLaunchKernelEx(self, config: Any, function: int, params: Any, extra: Any) -> None:
        arrays = self._take_arrays()
        self._check_fault()
        kernel: Kernel = self._get(function, Kernel)
        self._require_stream(config[0].stream)
        request = launch_request(config[0], kernel, self.device)
        values = bytearray(kernel.info.param_bytes)
        for i, parameter in enumerate(kernel.info.params):
            end = parameter.offset + parameter.size
            values[parameter.offset : end] = ctypes.string_at(params[i], parameter.size)
        self.device.launch(
            kernel.instance, kernel.info.name, bytes(values), ranges=arrays, **request
        )

    # -- occupancy -------------------------------------------------------------------------------

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, out: Any, function: int, threads: int, shared: int
    ) -> None:
        out[0] = occupancy(self.device, self._get(function, Kernel), threads, shared)

    def cuOccupancyMaxPotentialBlockSize(
        self, grid: Any, block: Any, function: int, to_shared: Any, shared: int, limit: int
    ) -> None:
        kernel: Kernel = self._get(function, Kernel)
        best = min(kernel.info.max_threads, limit or 1024)
        block[0] = best
        blocks = occupancy(self.device, kernel, best, shared)
        grid[0] = blocks * device_attribute(self.device, 16)  # multiprocessors

    def cuOccupancyMaxPotentialClusterSize(self, out: Any, function: int, config: Any) -> None:
        raise Refusal(801, "clusters are not emulated")

    def cuOccupancyMaxActiveClusters(self, out: Any, function: int, config: Any) -> None:
        raise Refusal(801, "clusters are not emulated")

    # -- memory ----------------------------------------------------------------------------------

    def _note_array(self, begin: int | None, size: int) -> None:
        if not begin:
            self._thread.arrays = []
            # With a size they serve every launch until the next call: a C++ function's.
            self._thread.keeps_arrays = size != 0
        elif size:
            self._thread.arrays.append((begin, size))

    def _take_arrays(self) -> list[tuple[int, int]]:
        arrays: list[tuple[int, int]] = getattr(self._thread, "arrays", [])
        if not getattr(self._thread, "keeps_arrays", False):
            self._thread.arrays = []
        return list(arrays)

    def cuPointerGetAttribute(self, out: int, attribute: int, address: int) -> None:
        if attribute != 9 or not self._is_allocated(address, 0):  # DEVICE_ORDINAL
            raise Refusal(INVALID_VALUE)
        ctypes.c_int.from_address(out).value = 0

    def cuMemAlloc(self, out: Any, size: int) -> None:
        self._check_fault()
        if size == 0:
            raise Refusal(INVALID_VALUE)
        try:
            out[0] = self.device.alloc(size)
        except MemoryError:
            raise Refusal(2) from None

    def cuMemFree(self, address: int) -> None:
        try:
            self.device.free(address)
        except KeyError:
            raise Refusal(INVALID_VALUE) from None

    def cuMemAllocAsync(self, out: Any, size: int, stream: int) -> None:
        self._require_stream(stream)
        self.cuMemAlloc(out, size)

    def cuMemFreeAsync(self, address: int, stream: int) -> None:
        self._require_stream(stream)
        self.cuMemFree(address)

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._copy(target, source, size, target, stream)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, stream: int) -> None:
        self._copy(target, source, size, source, stream)

    def _copy(self, target: int, source: int, size: int, device: int, stream: int) -> None:
        self._check_fault()
        self._require_stream(stream)
        if not self._is_allocated(device, size):
            raise Refusal(INVALID_VALUE, f"{size} bytes at {device:#x} are no allocation")
        ctypes.memmove(target, source, size)

    def cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> None:
        self._check_fault()
        self._require_stream(stream)
        if not self._is_allocated(target, size):
            raise Refusal(INVALID_VALUE, f"{size} bytes at {target:#x} are no allocation")
        ctypes.memset(target, value, size)

    def _is_allocated(self, address: int, size: int) -> bool:
        variables = (
            thing.ranges for thing in self._handles.values() if hasattr(thing, "function_address")
        )
        everything = itertools.chain(self.device.ranges, *variables)
        return any(base <= address and address + size <= base + n for base, n in everything)


class Stream:
    """A stream: everything runs at once, so there is nothing to keep."""


class Refusal(Exception):  # noqa: N818 - not a failure: an answer
    """A call that the driver answers with an error code."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


def make_driver() -> Driver:
    """Make the emulated driver.

    ``CULAUNCH_EMULATOR_ARCH`` says what device it has, ``CULAUNCH_EMULATOR_OPTIONS`` what that
    checks.

    Raises
    ------
    ValueError
        If one of them is not an architecture, such as ``"sm_80"``, or not options.
    """
    arch = os.environ.get("CULAUNCH_EMULATOR_ARCH") or "sm_80"
    if not arch.startswith("sm_") or not arch[3:].isdigit():
        raise ValueError(f"CULAUNCH_EMULATOR_ARCH must be as 'sm_80' (got {arch!r})")
    options = options_from_text(os.environ.get("CULAUNCH_EMULATOR_OPTIONS", ""))
    driver = EmulatedDriver(Device(arch, options))
    register(driver)
    functions = driver.table()
    _kept.append(functions)
    addresses = {
        name: ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in functions.items()
    }
    return Driver.from_functions("emulator", addresses, (1,))  # DLPack's kDLCPU


# C code holds the table for the life of the process.
_kept: list[dict[str, Any]] = []
