"""The driver table of the emulated device: the driver-API functions that culaunch uses."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import traceback
from typing import TYPE_CHECKING, Any

from culaunch._core import Driver
from culaunch._emulator._control import options_from_text, register
from culaunch._emulator._device import Device
from culaunch._emulator._driver_attributes import device_attribute
from culaunch._emulator._driver_memory import MemoryFunctions
from culaunch._emulator._driver_modules import ModuleFunctions
from culaunch._emulator._driver_state import INVALID_CONTEXT, UNKNOWN, Refusal, Stream
from culaunch._emulator._driver_types import DRIVER_VERSION, ERRORS, PROTOTYPES, NoteArray
from culaunch._emulator._fault import INVALID_VALUE, Fault

if TYPE_CHECKING:
    from collections.abc import Callable


class EmulatedDriver(ModuleFunctions, MemoryFunctions):
    """The driver API over one emulated device.

    Each ``cu...`` method is one function of the table. It gets what C code passes, returns what it
    found through pointers, and raises :class:`Refusal` (or lets a :class:`Fault` pass) for every
    result but success.

    Parameters
    ----------
    device : Device
    """

    def table(self) -> dict[str, Any]:
        """Give the C functions by name; they live as long as the dict's values."""
        functions: dict[str, Any] = {
            name: prototype(self._guarded(getattr(self, name)))
            for name, prototype in PROTOTYPES.items()
        }
        functions["note_array"] = NoteArray(self.note_array)
        return functions

    def _guarded(self, method: Callable[..., None]) -> Callable[..., int]:
        """Turn what a method raises into a CUresult: nothing may pass into C code."""

        @functools.wraps(method)
        def call(*arguments: Any) -> int:
            try:
                with self.lock:
                    method(*arguments)
            except Refusal as refusal:
                self.set_detail(refusal.code, refusal.reason)
                return refusal.code
            except Fault as fault:
                self.set_detail(fault.code, str(fault))
                return fault.code
            except Exception as error:  # noqa: BLE001 - our defects must reach the user as errors
                if str(error) == "NULL pointer access":  # ctypes: a pointer to a result is null
                    self.set_detail(INVALID_VALUE, f"{method.__name__} was given a null pointer")
                    return INVALID_VALUE
                detail = "a defect of the emulator, please report it:\n" + traceback.format_exc()
                self.set_detail(UNKNOWN, detail)
                return UNKNOWN
            return 0

        return call

    # -- the driver, the device ------------------------------------------------------------------

    def cuInit(self, flags: int) -> None:
        """Nothing to initialise."""
        if flags != 0:
            raise Refusal(INVALID_VALUE, "the flags of cuInit must be 0")

    def cuDriverGetVersion(self, out: Any) -> None:
        out[0] = DRIVER_VERSION

    def cuGetErrorName(self, code: int, out: Any) -> None:
        self._require_error(code, out)
        out[0] = self.string(ERRORS[code][0])

    def cuGetErrorString(self, code: int, out: Any) -> None:
        self._require_error(code, out)
        out[0] = self.error_text(code)

    def _require_error(self, code: int, out: Any) -> None:
        if code not in ERRORS:
            out[0] = None
            raise Refusal(INVALID_VALUE, f"{code} is no CUresult")

    def cuDeviceGet(self, out: Any, ordinal: int) -> None:
        self.require_device(ordinal)
        out[0] = ordinal

    def cuDeviceGetCount(self, out: Any) -> None:
        out[0] = 1

    def cuDeviceGetName(self, out: int, length: int, device: int) -> None:
        self.require_device(device)
        if not out or length < 1:
            raise Refusal(INVALID_VALUE, "no room for a name")
        name = f"culaunch emulator ({self.device.arch})".encode()[: length - 1] + b"\0"
        ctypes.memmove(out, name, len(name))

    def cuDeviceGetAttribute(self, out: Any, attribute: int, device: int) -> None:
        self.require_device(device)
        value = device_attribute(self.device, attribute)
        if value is None:
            raise Refusal(INVALID_VALUE, f"there is no device attribute {attribute}")
        out[0] = value

    # -- contexts and streams --------------------------------------------------------------------

    def cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> None:
        self.require_device(device)
        out[0] = self.context_handle

    def cuCtxGetCurrent(self, out: Any) -> None:
        out[0] = self.stack[-1] if self.stack else None

    def cuCtxGetDevice(self, out: Any) -> None:
        self._require_current()
        out[0] = 0

    def cuCtxPushCurrent(self, context: int) -> None:
        if context != self.context_handle:
            raise Refusal(INVALID_CONTEXT, f"{context or 0:#x} is no context")
        self.stack.append(context)

    def cuCtxPopCurrent(self, out: Any) -> None:
        self._require_current()
        context = self.stack.pop()
        if out:
            out[0] = context

    def _require_current(self) -> None:
        if not self.stack:
            raise Refusal(INVALID_CONTEXT, "no context is current in this thread")

    def cuCtxSynchronize(self) -> None:
        self.require_context()

    def cuStreamGetCtx(self, stream: int | None, out: Any) -> None:
        self.require_stream(stream)
        if stream in (None, 0, 1, 2):  # a default stream is the current context's
            self._require_current()
        out[0] = self.context_handle

    def cuStreamSynchronize(self, stream: int) -> None:
        self.require_stream(stream)
        self.require_context()

    def cuStreamCreateWithPriority(self, out: Any, flags: int, priority: int) -> None:
        self.require_context()
        if flags not in (0, 1):
            raise Refusal(INVALID_VALUE, f"{flags:#x} are no flags of a stream")
        out[0] = self.add(Stream())

    def cuStreamDestroy(self, stream: int) -> None:
        self.get(stream, Stream)
        self.remove(stream)

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> None:
        # Nothing is ever captured: only the mode itself is kept.
        mode[0], self.capture_mode = self.capture_mode, mode[0]


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
    if not re.fullmatch(r"sm_\d{2,3}", arch):
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
