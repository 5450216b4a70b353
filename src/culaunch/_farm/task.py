"""One request as it goes to a worker and comes back.

An executor pickles what it is given, once for each request. What is large and the same for many
requests (headers, a source) is therefore not in a request but named there by its digest; a worker
that does not have it says so, and gets that request again with it. No file system is needed for
this, and nothing of the executor but ``submit``.
"""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culaunch._errors import CulaunchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Sets of headers are few in a program; a worker that forgot one asks again.
_MOST_KEPT = 32

_kept: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()
# Tells a worker that runs in the process that asked: a thread, whose answers are not pickled.
_HERE = os.urandom(16)


@dataclass(frozen=True)
class Shared:
    """An argument that many tasks have in common."""

    digest: str
    """What stands for its contents."""
    value: Any


@dataclass(frozen=True)
class Task:
    """One request."""

    run: Callable[..., Any]
    """At the top of a module, so that it can be pickled; it gets the arguments by name."""
    arguments: Mapping[str, Any]
    label: str
    """What messages call it: ``request 3 of compile_many (scale.cu)``."""
    shared: Mapping[str, Shared] = field(default_factory=dict)
    """Arguments that are sent once to each worker."""

    def message(self, *, whole: bool) -> Message:
        """Return what is sent: with the shared arguments themselves, or with their digests."""
        digests = {name: one.digest for name, one in self.shared.items()}
        values = {one.digest: one.value for one in self.shared.values()} if whole else {}
        return Message(self.run, dict(self.arguments), digests, values, (_HERE, os.getpid()))


@dataclass(frozen=True)
class Message:
    """What a worker gets."""

    run: Callable[..., Any]
    arguments: dict[str, Any]
    digests: dict[str, str]
    values: dict[str, Any]
    sender: tuple[bytes, int]


@dataclass(frozen=True)
class Made:
    """The answer of a worker that did the work."""

    value: Any


@dataclass(frozen=True)
class Failed:
    """The answer of a worker whose work raised an exception.

    It comes back as a value: an executor may wrap what is raised in a type of its own, print it, or
    keep the text alone.
    """

    error: Exception
    trace: str
    """The traceback as text, which no exception takes through a pickle."""


@dataclass(frozen=True)
class Lacking:
    """The answer of a worker that does not have the shared arguments."""


def perform(message: Message) -> Made | Failed | Lacking:
    """Do the work; this is what an executor runs."""
    with _lock:
        for digest, value in message.values.items():
            _keep(digest, value)
        shared = {name: _kept.get(digest) for name, digest in message.digests.items()}
        for digest in message.digests.values():
            if digest in _kept:
                _kept.move_to_end(digest)
    if any(value is None for value in shared.values()):
        return Lacking()
    try:
        return Made(message.run(**message.arguments, **shared))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this request
        text = "" if isinstance(error, CulaunchError) else traceback.format_exc()
        if message.sender != (_HERE, os.getpid()):
            error = _picklable(error)
        return Failed(error, text)


def _keep(digest: str, value: Any) -> None:
    _kept[digest] = value
    _kept.move_to_end(digest)
    while len(_kept) > _MOST_KEPT:
        _kept.popitem(last=False)


def _picklable(error: Exception) -> Exception:
    """Return an exception that survives the way back; one that does not would end a pool."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - what was pickled just now
    except Exception:  # noqa: BLE001 - a class of anybody's may raise anything there
        return CulaunchError(f"{type(error).__name__}: {error}")
    return error
