"""How far a farm has come: counts, and an estimate of the rest."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._base.values import spell
from culaunch._base.waiting import waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Progress:
    """The argument of a ``progress=`` callable after each request that has ended.

    Examples
    --------
    >>> def show(progress):
    ...     print(progress.done, "of", progress.total)
    >>> images = cl.compiling.compile_many([source, source], jobs=1, progress=show)
    1 of 2
    2 of 2
    """

    done: int
    """Finished requests, including failed ones."""
    total: int
    failed: int
    elapsed: float
    """Seconds since the start."""

    @property
    def remaining(self) -> float:
        """Estimated seconds until the end, at the speed so far; NaN before the first result."""
        return self.elapsed / self.done * (self.total - self.done) if self.done else float("nan")


class Meter:
    """Counts, and calls the callable."""

    def __init__(self, total: int, tell: Callable[[Progress], object]) -> None:
        self._total = total
        self._tell = tell
        self._start = time.monotonic()
        self._done = self._failed = 0

    def count(self, *, failed: bool) -> None:
        """Count a request that has ended."""
        self._done += 1
        self._failed += failed
        elapsed = time.monotonic() - self._start
        self._tell(Progress(self._done, self._total, self._failed, elapsed))


@contextlib.contextmanager
def metered(progress: bool | Callable[[Progress], object], total: int) -> Iterator[Meter]:
    """Yield a meter that draws a bar (True), tells a callable, or says nothing (False)."""
    if callable(progress):
        yield Meter(total, progress)
    elif progress:
        with waiting(f"compiling 0 of {total}", delay=0.0) as show:

            def draw(now: Progress) -> None:
                failed = f", {now.failed} failed" if now.failed else ""
                show(
                    f"compiling {now.done} of {now.total}{failed}, about {now.remaining:.0f} s left"
                )

            yield Meter(total, draw)
    else:
        yield Meter(total, lambda _: None)


def checked_progress(progress: object) -> None:
    """Raise TypeError unless it is a bool or a callable."""
    if not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress must be True, False or callable (got {spell(progress)})")
