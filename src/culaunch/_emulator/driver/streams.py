"""The emulated driver's functions for streams and events; everything runs at once."""

from __future__ import annotations

import threading
import time
from typing import Any

from culaunch._base.cuda import Result
from culaunch._emulator.driver.state import DriverState, Refusal, Stream
from culaunch._emulator.fault import INVALID_VALUE

_DISABLE_TIMING = 2  # CU_EVENT_DISABLE_TIMING


class StreamFunctions(DriverState):
    """The functions ``cuStream...`` and ``cuEvent...``; times are the emulation's."""

    def cuCtxGetStreamPriorityRange(self, least: Any, greatest: Any) -> None:
        self.require_context()
        least[0], greatest[0] = 0, -5  # as GPUs have it

    def cuStreamSynchronize(self, stream: int) -> None:
        self.require_stream(stream)
        self.require_context()

    def cuStreamQuery(self, stream: int) -> None:
        self.cuStreamSynchronize(stream)

    def cuStreamGetId(self, stream: int | None, out: Any) -> None:
        self.require_stream(stream)
        # Handles are never reused. Null is the legacy stream, and each thread has its own default
        # stream.
        own = (stream or 1) if stream != 2 else (threading.get_ident() << 4) + 2
        out[0] = own

    def cuStreamCreateWithPriority(self, out: Any, flags: int, priority: int) -> None:
        self.require_context()
        if flags not in (0, 1):
            raise Refusal(INVALID_VALUE, f"{flags:#x} are not valid flags for a stream")
        out[0] = self.add(Stream())

    def cuStreamDestroy(self, stream: int) -> None:
        self.get(stream, Stream)
        self.remove(stream)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self.require_stream(stream)
        self.get(event, Event)
        self.require_context()

    def cuEventCreate(self, out: Any, flags: int) -> None:
        self.require_context()
        out[0] = self.add(Event(is_timed=not flags & _DISABLE_TIMING))

    def cuEventDestroy(self, event: int) -> None:
        self.get(event, Event)
        self.remove(event)

    def cuEventRecord(self, event: int, stream: int) -> None:
        self.require_stream(stream)
        self.require_context()
        self.get(event, Event).time = time.perf_counter()

    def cuEventQuery(self, event: int) -> None:
        self.get(event, Event)
        self.require_context()

    def cuEventSynchronize(self, event: int) -> None:
        self.cuEventQuery(event)

    def cuEventElapsedTime(self, out: Any, start: int, end: int) -> None:
        first, last = self.get(start, Event), self.get(end, Event)
        if not (first.is_timed and last.is_timed) or None in (first.time, last.time):
            raise Refusal(Result.INVALID_HANDLE, "the event was created without timing")
        out[0] = 1e3 * (last.time - first.time)


class Event:
    """An event: when it was recorded last, in seconds."""

    def __init__(self, *, is_timed: bool) -> None:
        self.is_timed = is_timed
        self.time: float | None = None
