"""A profile in Chrome's trace event format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from culaunch._profile.listing import Listing

_HOST = 0  # the "process" of the host; devices follow it


def trace_events(profile: Listing) -> list[dict[str, Any]]:
    """Return the events of a profile: calls of threads, kernels of streams; times in microseconds.

    Parameters
    ----------
    profile : Listing
    """
    lanes: dict[tuple[int, object], int] = {}
    events: list[dict[str, Any]] = [_named("process_name", _HOST, 0, "host")]
    seen: set[int] = set()

    def lane(process: int, key: object, name: str) -> int:
        number = lanes.get((process, key))
        if number is None:
            number = lanes[process, key] = len(lanes) + 1
            events.append(_named("thread_name", process, number, name))
        return number

    for launch in profile.launches:
        details: dict[str, Any] = {
            "grid": list(launch.grid),
            "block": list(launch.block),
            "shared memory": launch.shared_memory,
            "state": launch.state,
        }
        if launch.argument_bytes is not None:
            details["argument bytes"] = launch.argument_bytes
        if launch.error:
            details["error"] = launch.error
        common = {"name": launch.name, "ph": "X", "args": details}
        if launch.host_time is not None:
            thread = lane(_HOST, launch.thread, f"thread {launch.thread}")
            events.append(
                {**common, "cat": "launch", "pid": _HOST, "tid": thread}
                | {"ts": 1e3 * launch.begin, "dur": 1e3 * launch.host_time}
            )
        if launch.device_begin is None or launch.device_time is None:
            continue
        process = launch.device + 1
        if process not in seen:
            seen.add(process)
            events.append(_named("process_name", process, 0, f"device {launch.device}"))
        stream = lane(process, launch.stream, f"stream {launch.stream:#x}")
        events.append(
            {**common, "cat": "kernel", "pid": process, "tid": stream}
            | {"ts": 1e3 * launch.device_begin, "dur": 1e3 * launch.device_time}
        )
    return events


def _named(what: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": lane, "args": {"name": name}}
