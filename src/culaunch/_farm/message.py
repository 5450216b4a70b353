"""The messages to a worker and back: some tasks, and their answers.

An executor pickles its input, once for each message. Large values that many tasks share (headers, a
source) are therefore not part of a message, which only names them by digest. A worker that lacks a
value reports it, and gets those tasks again with the value. This needs no file system, and nothing
of the executor except ``submit``.
"""

from __future__ import annotations

import itertools
import os
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._farm.task import Task

# Every Python that culaunch runs on has it, whichever of them a worker is.
_PROTOCOL = 5
# Identifies a worker in this process: a thread, whose answers are not pickled.
HERE = os.urandom(16)

_numbers = itertools.count()


@dataclass(frozen=True)
class Message:
    """The message to a worker."""

    items: tuple[tuple[Callable[..., Any], dict[str, Any], dict[str, str]], ...]
    """For each task: the function, its arguments, and the digests of shared arguments."""
    values: dict[str, Any]
    """Shared values by digest, for a worker that does not have them."""
    seconds: float
    """After so long no further one of the tasks begins."""
    stops: bool
    """Whether none begins after one that failed."""
    sender: tuple[bytes, int, int]
    """Which process asks, and a number of its own for each message: engines that know a call by its
    arguments, as Dask does, shall not take it for one that was answered before."""

    @classmethod
    def of(cls, tasks: Sequence[Task], *, whole: bool, seconds: float, stops: bool) -> Message:
        """Return the message of some tasks, with their shared values or only their digests."""
        items = []
        values: dict[str, Any] = {}
        for task in tasks:
            digests = {name: one.digest for name, one in task.shared.items()}
            items.append((task.run, dict(task.arguments), digests))
            if whole:
                values.update((one.digest, one.value) for one in task.shared.values())
        sender = (HERE, os.getpid(), next(_numbers))
        return cls(tuple(items), values, seconds, stops, sender)

    def packed(self) -> Message | bytes:
        """Return its pickle if any process can read that, or the object if only the engine can.

        Engines search an object for tokens and for results of other calls, which takes longer than
        everything else. They do not search bytes.
        """
        try:
            data = pickle.dumps(self, _PROTOCOL)
        except Exception:  # noqa: BLE001 - an object of anybody's may raise anything there
            return self
        # Definitions of the program itself have no module to import. Some engines send them by
        # value.
        return self if b"__main__" in data else data


@dataclass(frozen=True)
class Reply:
    """The answer."""

    answers: tuple[Done | Failed | Lacking | NotBegun, ...]
    worker: bytes
    """Which process it was."""
    seconds: float
    """The duration of the work."""


@dataclass(frozen=True)
class Done:
    """The answer of a worker that did the work."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """The answer of a worker whose work raised an exception.

    It is returned as a value: an executor may wrap a raised exception in its own type, print it, or
    keep only the text.
    """

    error: Exception
    trace: str
    """The traceback as text, which no exception takes through a pickle."""


@dataclass(frozen=True)
class Lacking:
    """The answer of a worker that lacks shared values."""


@dataclass(frozen=True)
class NotBegun:
    """The answer of a worker that had no time left, or was to stop."""
