"""Measures with the host's clock if Triton's own method needs an NVIDIA device's events."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from culaunch._launch.devices.driver import current_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class HostClock:
    """The stand-in for PyTorch's device module in ``triton.testing.do_bench``.

    Launches on the host have ended when they return, so there is nothing to wait for.
    """

    class Event:
        """A point in time."""

        def __init__(self, enable_timing: bool = True) -> None:  # noqa: ARG002
            self._at = 0.0

        def record(self) -> None:
            """Record the current time."""
            self._at = time.perf_counter()

        def synchronize(self) -> None:
            """Wait for nothing."""

        def elapsed_time(self, end: HostClock.Event) -> float:
            """Return the milliseconds from this moment to another, and never zero."""
            return max(1e3 * (end._at - self._at), 1e-6)  # noqa: SLF001

    @staticmethod
    def synchronize() -> None:
        """Wait for nothing."""


def set_benchmark(tuner: Any) -> None:
    """Let an autotuner measure on the driver in use."""
    if current_driver().name != "cuda" and getattr(tuner, "_do_bench", None) is None:
        # Triton's own method needs an NVIDIA device's events.
        vars(tuner).pop("do_bench", None)
        vars(tuner)["_do_bench"] = time_once  # Triton stores it there


def time_once(call: Callable[[], object], quantiles: Sequence[float], **_: Any) -> list[float]:
    """Return how many milliseconds one call takes, for each quantile."""
    start = time.perf_counter()
    call()
    return [1e3 * (time.perf_counter() - start)] * len(quantiles)
