"""The driver table of the emulated device: the driver-API functions that culaunch uses."""

from __future__ import annotations

import ctypes
import re
import traceback
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import Result
from culaunch._base.untraced import untraced
from culaunch._core import DriverFunction
from culaunch._emulator.driver.attributes import device_attribute
from culaunch._emulator.driver.c_types import DRIVER_VERSION, ERRORS, PROTOTYPES, NoteArray
from culaunch._emulator.driver.graphs import GraphFunctions
from culaunch._emulator.driver.state import INVALID_CONTEXT, UNKNOWN, Refusal
from culaunch._emulator.driver.tensor_maps import TensorMapFunctions
from culaunch._emulator.fault import INVALID_VALUE, Fault
from culaunch._emulator.outside import comes_from_outside
from culaunch._errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Callable


# Functions that may take long, or that call a function of the caller's: an interrupt ends them. All
# others are called again after one.
_LONG = re.compile(
    "Launch|AddCallback|MaxPotentialBlockSize|cuModule|cuLibrary(Load|GetKernel$|EnumerateKernels)"
)


class EmulatedDriver(GraphFunctions, TensorMapFunctions):
    """The driver API over one emulated device.

    Each ``cu...`` method is one function of the table. It gets the arguments of C code, returns its
    results through pointers, and raises :class:`Refusal` (or lets a :class:`Fault` pass) for every
    result but success. An interrupt may come between any two steps, and all but the long ones
    (``_LONG``) then run again: what must not happen twice is their last step, and no call.

    Parameters
    ----------
    device : Device
    """

    def table(self) -> dict[str, Any]:
        """Return the C functions by name; they live as long as the dict's values."""
        functions: dict[str, Any] = {
            name: prototype(self.c_function(untraced(getattr(self, name))))
            for name, prototype in PROTOTYPES.items()
            if hasattr(self, name)  # a driver may lack some functions
        }
        functions["note_array"] = NoteArray(self.c_function(self.note_array))
        return functions

    def c_function(self, method: Callable[..., None]) -> DriverFunction:
        """Return the function of a method: it takes the lock, and turns exceptions into codes."""
        is_repeated = _LONG.search(method.__name__) is None
        return DriverFunction(self, method, self._code_of, is_repeated)

    def _code_of(self, method: Callable[..., None], error: BaseException) -> int | BaseException:
        """Turn an exception of a method into a CUresult; return foreign exceptions unchanged."""
        # A refusal comes from the driver, and a fault from the kernel. Both have a code and a text,
        # which cuGetErrorString returns in this thread.
        if isinstance(error, Refusal):
            self.set_detail(error.code, error.reason)
            return error.code
        if isinstance(error, Fault):
            self.set_report(error.code, error.report)
            return error.code
        # The scheduler wraps an instruction's exception; its origin counts. KeyboardInterrupt, and
        # any exception of a signal's handler, belongs to the user and is passed on.
        cause = error.__cause__ if isinstance(error, InternalError) and error.__cause__ else error
        if not isinstance(cause, Exception) or comes_from_outside(cause):
            self.set_detail(UNKNOWN, f"{type(cause).__name__} ended the call")
            return cause
        if str(error) == "NULL pointer access":  # ctypes: a pointer to a result is null
            self.set_detail(INVALID_VALUE, f"{method.__name__} was given a null pointer")
            return INVALID_VALUE
        # C gets a number and a text, no exception, so the traceback goes into the text.
        trace = "".join(traceback.format_exception(error))
        self.set_detail(UNKNOWN, f"a defect of the emulator, please report it:\n{trace}")
        return UNKNOWN

    # -- the driver, the device ------------------------------------------------------------------

    def cuInit(self, flags: int) -> None:
        """Do nothing: there is nothing to initialize."""
        if flags != 0:
            raise Refusal(INVALID_VALUE, "the flags of cuInit must be 0")

    def cuDriverGetVersion(self, out: Any) -> None:
        out[0] = DRIVER_VERSION

    def cuGetErrorName(self, code: int, out: Any) -> None:
        self._require_error(code, out)
        out[0] = self.string(Result(code).full_name)

    def cuGetErrorString(self, code: int, out: Any) -> None:
        self._require_error(code, out)
        out[0] = self.error_text(code)

    def _require_error(self, code: int, out: Any) -> None:
        if code not in ERRORS:
            out[0] = None
            raise Refusal(INVALID_VALUE, f"{code} is not a CUresult")

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

    def cuDevicePrimaryCtxRelease(self, device: int) -> None:
        self.require_device(device)

    def cuCtxGetCurrent(self, out: Any) -> None:
        out[0] = self.stack[-1] if self.stack else None

    def cuCtxGetDevice(self, out: Any) -> None:
        self._require_current()
        out[0] = 0

    def cuCtxPushCurrent(self, context: int) -> None:
        if context != self.context_handle:
            raise Refusal(INVALID_CONTEXT, f"{context or 0:#x} is not a context")
        # Change the list in single operations, so an interrupt comes before or after them.
        stack = self.stack
        stack += [context]

    def cuCtxPopCurrent(self, out: Any) -> None:
        self._require_current()
        stack = self.stack
        if out:
            out[0] = stack[-1]
        del stack[-1]

    def _require_current(self) -> None:
        if not self.stack:
            raise Refusal(INVALID_CONTEXT, "no context is current in this thread")

    def cuCtxSynchronize(self) -> None:
        self.require_context()
        self.device.require_no_leaks()

    def cuStreamGetCtx(self, stream: int | None, out: Any) -> None:
        self.require_stream(stream)
        if stream in (None, 0, 1, 2):  # a default stream is the current context's
            self._require_current()
        out[0] = self.context_handle

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> None:
        # Nothing is ever captured: only the mode itself is kept.
        mode[0], self.capture_mode = self.capture_mode, mode[0]
