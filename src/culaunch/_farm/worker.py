"""The code that runs on a worker."""

from __future__ import annotations

import os
import pickle
import time
import traceback
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._errors import CulaunchError
from culaunch._farm.message import HERE, Done, Failed, Lacking, Message, NotBegun, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

# Sets of headers are few in a program; a worker that forgot one asks again.
_MOST_KEPT = 32

_kept: OrderedDict[str, Any] = OrderedDict()
_lock = ForkLock()


def perform(message: Message | bytes) -> Reply | bytes:
    """Do the work; executors run this function."""
    if isinstance(message, bytes):
        reply = _perform(pickle.loads(message), is_sent=True)  # noqa: S301 - of whoever runs this
        return pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)
    return _perform(message, is_sent=message.sender[:2] != (HERE, os.getpid()))


def _perform(message: Message, *, is_sent: bool) -> Reply:
    values = _shared(message)
    start = time.monotonic()
    answers: list[Done | Failed | Lacking | NotBegun] = []
    is_over = False
    for run, arguments, digests in message.items:
        shared = {name: values.get(digest) for name, digest in digests.items()}
        if is_over:
            answers.append(NotBegun())
        elif any(value is None for value in shared.values()):
            answers.append(Lacking())
        else:
            answers.append(answer := _answer(run, {**arguments, **shared}, is_sent))
            has_failed = isinstance(answer, Failed) and message.stops
            is_over = has_failed or time.monotonic() - start > message.seconds
    worker = HERE + os.getpid().to_bytes(8, "little")  # a forked child inherits its parent's
    return Reply(tuple(answers), worker, time.monotonic() - start)


def _answer(run: Callable[..., Any], arguments: dict[str, Any], is_sent: bool) -> Done | Failed:
    try:
        return Done(run(**arguments))
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this request
        text = "" if isinstance(error, CulaunchError) else traceback.format_exc()
        return Failed(_picklable(error) if is_sent else error, text)


def _shared(message: Message) -> dict[str, Any]:
    """Store the shared values of a message; return the values of its tasks that are here."""
    with _lock:
        _kept.update(message.values)
        wanted = {digest for _, _, digests in message.items for digest in digests.values()}
        for digest in wanted & _kept.keys():
            _kept.move_to_end(digest)
        found = {digest: _kept.get(digest) for digest in wanted}
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return found


def _picklable(error: Exception) -> Exception:
    """Return an exception that survives the way back; one that does not would end a pool."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - what was pickled just now
    except Exception:  # noqa: BLE001 - a class of anybody's may raise anything there
        return CulaunchError(f"{type(error).__name__}: {error}")
    return error
