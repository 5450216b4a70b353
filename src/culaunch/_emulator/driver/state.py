"""The state that the emulated driver's functions share: handles, contexts, error texts."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.cuda import Result
from culaunch._emulator.driver.c_types import (
    ERRORS,
    NOTE_ARRAY,
    NOTE_READ_ONLY,
    NOTE_READ_ONLY_STORAGE,
    NOTE_STORAGE,
)

if TYPE_CHECKING:
    from culaunch._emulator.device import Device
    from culaunch._emulator.module import LoadedModule
    from culaunch._emulator.ptx_image import PtxKernel
    from culaunch._emulator.report import Report

INVALID_CONTEXT = Result.INVALID_CONTEXT
INVALID_HANDLE = Result.INVALID_HANDLE
UNKNOWN = Result.UNKNOWN
# Null, and CU_STREAM_LEGACY and CU_STREAM_PER_THREAD of cuda.h.
DEFAULT_STREAMS = (None, 0, 1, 2)


class DriverState:
    """The handles of one emulated device, and what each thread has done with it.

    Parameters
    ----------
    device : Device
    """

    # Whether another driver of this process, if there is one, has the same device.
    is_shared = False

    def __init__(self, device: Device) -> None:
        self.device = device
        self.context = Context()
        # (library, kernel's name) -> handle: a kernel has one handle, as CUDA promises.
        self.kernels: dict[tuple[int, str], int] = {}
        # Every loaded module, for the addresses of its variables.
        self.modules: dict[int, LoadedModule] = {}
        self._handles: dict[int, Any] = {}
        # Handles look like pointers, are never null, and are never reused: a destroyed one stays
        # invalid.
        self._next = itertools.count(0x1000, 0x10)
        self._thread = _Thread()
        # C holds on to names and texts for as long as it likes, and there are few of them.
        self._strings: dict[str, ctypes.Array[ctypes.c_char]] = {}
        self._recent: deque[ctypes.Array[ctypes.c_char]] = deque(maxlen=256)
        self.context_handle = self.add(self.context)

    @property
    def lock(self) -> threading.RLock:
        """The lock that a call of the driver holds; a fork may renew it."""
        return self.device.lock.current

    def reset(self) -> None:
        """Forget the device's fault, which no CUDA device can."""
        with self.lock:
            self.device.fault = None
            self.clear_details()

    # -- handles

    def add(self, thing: Any) -> int:
        """Give an object a handle."""
        handle = next(self._next)
        self._handles[handle] = thing
        return handle

    def get(self, handle: int | None, kind: type[Any]) -> Any:
        """Return the thing of a handle, which must be of a kind."""
        thing = self._handles.get(handle or 0)
        if not isinstance(thing, kind):
            raise Refusal(INVALID_HANDLE, f"{handle or 0:#x} is not a handle of a {kind.__name__}")
        return thing

    def all(self, kind: type[Any]) -> list[Any]:
        """Return all objects of a kind."""
        # A copy, because the garbage collector may destroy a stream or an event during the loop.
        return [thing for thing in self._handles.copy().values() if isinstance(thing, kind)]

    def remove(self, handle: int) -> None:
        """Make a handle invalid; handles are never reused."""
        del self._handles[handle]

    # -- checks and contexts of a call

    @property
    def stack(self) -> list[int]:
        """The contexts of this thread, the current one last."""
        return self._thread.stack

    @property
    def noted(self) -> Noted:
        """The arrays that this thread's next launch is given."""
        return self._thread.noted

    def require_device(self, device: int) -> None:
        """Refuse every device but the first."""
        if device != 0:
            raise Refusal(Result.INVALID_DEVICE, "the emulator has one device, 0")

    def require_context(self) -> None:
        """Refuse a call in a thread without a current context, and every call after a fault."""
        self.clear_details()
        if not self.stack:
            raise Refusal(INVALID_CONTEXT, "no context is current in this thread")
        self.device.require_no_fault()

    def require_context_of(self, stream: int | None) -> None:
        """Refuse a launch: a default stream is the current context's, others have their own."""
        if stream in DEFAULT_STREAMS:
            self.require_context()
        else:
            self.clear_details()
            self.require_stream(stream)
            self.device.require_no_fault()

    def require_stream(self, stream: int | None) -> None:
        """Refuse an argument that is neither a default stream nor a stream's handle."""
        if stream not in DEFAULT_STREAMS:
            self.get(stream, Stream)

    # -- texts

    def set_detail(self, code: int, detail: str) -> None:
        """Set the text that cuGetErrorString adds to the usual one in this thread."""
        self._thread.details[code] = detail

    def set_report(self, code: int, report: Report) -> None:
        """Set the record, and so the text, of an error in this thread."""
        self._thread.report = report
        self.set_detail(code, str(report))

    def report_in(self, message: str) -> Report | None:
        """Return the latest record of this thread if a message contains its text."""
        report = self._thread.report
        return report if report is not None and str(report) in message else None

    def clear_details(self) -> None:
        """Say nothing more of earlier errors: another call begins."""
        self._thread.details = {}

    def error_text(self, code: int) -> int:
        """Return the address of an error's text with the detail of this thread's last one."""
        detail = self._thread.details.get(code)
        if not detail:
            return self.string(ERRORS[code])
        # C reads it at once; a few are kept for threads that do so a little later.
        self._recent.append(ctypes.create_string_buffer(f"{ERRORS[code]}: {detail}".encode()))
        return ctypes.addressof(self._recent[-1])

    def string(self, text: str) -> int:
        """Return the address of a C string that stays."""
        if text not in self._strings:
            self._strings[text] = ctypes.create_string_buffer(text.encode())
        return ctypes.addressof(self._strings[text])


class Kernel:
    """A kernel of a loaded module; its handle serves as CUkernel and as CUfunction."""

    def __init__(self, module: LoadedModule, info: PtxKernel) -> None:
        self.module = module
        self.info = info
        # The shared memory that cuKernelSetAttribute opted in to.
        self.max_dynamic_shared: int | None = None
        self.allows_large_clusters = False

    @property
    def max_cluster(self) -> int:
        """The most blocks of a cluster: 16 are not portable, and H100 has them."""
        return 16 if self.allows_large_clusters else 8


class Context:
    """The primary context; there is no other."""


class Stream:
    """A stream: everything runs at once, so there is nothing to keep."""


class Arrays(NamedTuple):
    """Address and size of each array of a launch, and of the memory that views are views of."""

    writable: list[tuple[int, int]]
    read_only: list[tuple[int, int]]
    storages: list[tuple[int, int]]
    read_only_storages: list[tuple[int, int]]

    def whole(self) -> Arrays:
        """Return the same arrays, where read-only views are all that they are views of.

        A writable array may be a view of the same memory: that can be written then.
        """
        writable = [(begin, begin + size) for begin, size in self.storages]
        more = [
            (base, size)
            for base, size in self.read_only_storages
            if not any(base < end and begin < base + size for begin, end in writable)
        ]
        return Arrays(self.writable, [*self.read_only, *more], self.storages, [])


_KINDS = (NOTE_ARRAY, NOTE_READ_ONLY, NOTE_STORAGE, NOTE_READ_ONLY_STORAGE)  # in that order


class Noted:
    """Arrays that the next launch of a thread, or all of a C++ function, may touch."""

    def __init__(self) -> None:
        self.begin(stay=False)

    def begin(self, *, stay: bool) -> None:
        """Forget the arrays of calls before; those of this one stay until the next, or do not."""
        self._arrays = Arrays([], [], [], [])
        self._stay = stay

    def add(self, begin: int, size: int, note: int) -> None:
        """Add an array, or the base of a view."""
        self._arrays[_KINDS.index(note)].append((begin, size))

    def take(self) -> Arrays:
        """Return the arrays of a launch."""
        arrays = self._arrays
        if not self._stay:
            self.begin(stay=False)
        return arrays


class _Thread(threading.local):
    def __init__(self) -> None:
        self.stack: list[int] = []
        self.details: dict[int, str] = {}
        self.report: Report | None = None
        self.noted = Noted()


class Refusal(Exception):  # noqa: N818 - not a failure: an answer
    """A call that the driver answers with an error code."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
