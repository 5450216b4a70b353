"""Tasks on their way to an executor and back: how many at a time, and how many together."""

from __future__ import annotations

import itertools
import pickle
import queue
import time
from collections import deque
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._errors import CulaunchError
from culaunch._farm.message import Done, Failed, Lacking, Message, Reply
from culaunch._farm.worker import perform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._farm.task import Task

# This many messages are sent before the first answer, and each answer allows two more. The duration
# of the work, and the values that workers have, are then known before the executor's queue holds
# all tasks.
_FIRST_SENT = 8
# If answers take longer than this, twice as many messages are sent, to occupy thousands of workers
# soon. Workers that have not answered at all may still be starting.
_PATIENCE = 0.25
_PATIENCE_AT_FIRST = 2.0
# Fast tasks are sent together, as many as a worker completes in this time, because any message
# costs up to some milliseconds. After this time, no worker begins another task of the message.
_TOGETHER_SECONDS = 0.25
_MOST_TOGETHER = 32
# A value that many tasks share is sent once to a worker that lacks it. If a task still arrives
# without it, it is sent again up to this many times: an engine may give messages to other workers,
# and in another order.
_MOST_LACKED = 2
# Less work than this is not worth a separate message, even if a worker is waiting.
_LEAST_SECONDS = 0.005
# Seconds between looks at jobs that cannot say when they are done.
_LOOK = 0.2


class TasksInFlight:
    """Tasks that are sent and answered.

    Parameters
    ----------
    tasks : sequence of Task
        All of them.
    executor
        What runs them.
    is_here : bool
        Whether the executor's workers see this process's memory: then nothing is pickled.
    stops : bool
        Whether nothing shall begin after a failure.
    """

    def __init__(self, tasks: Sequence[Task], executor: Any, *, is_here: bool, stops: bool) -> None:
        self._tasks = tasks
        self._executor = executor
        self._is_here = is_here
        self._stops = stops
        self._is_cancelled = False
        self._waiting = deque(_Waiting(index) for index in range(len(tasks)))
        self._sent: dict[int, _Sent] = {}
        self._looked_at: set[int] = set()
        self._numbers = itertools.count()
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._room = len(tasks) if is_here else _FIRST_SENT
        self._widened = time.monotonic() + _PATIENCE_AT_FIRST - _PATIENCE
        self._workers: set[bytes] = set()
        # The workers that were sent a missing value and have not answered yet.
        self._asked: set[tuple[bytes, tuple[str, ...]]] = set()
        self._done = 0
        self._each = 0.0  # seconds that one task takes a worker, the last ones above all

    def next(self) -> list[tuple[int, Done | Failed]] | None:
        """Return completed tasks with their answers; None if no tasks are left."""
        while True:
            self._send()
            if not self._sent:
                return None
            number = self._wait()
            if number is None:
                continue
            sent = self._sent.pop(number)
            self._looked_at.discard(number)
            ended = self._ends_of(sent)
            if ended:
                return ended

    def cancel(self) -> None:
        """Start nothing more; forget the futures that cannot report that they were canceled."""
        self._is_cancelled = True
        self._waiting.clear()
        for number, sent in list(self._sent.items()):
            cancelled = sent.future.cancel()
            if number in self._looked_at or cancelled:
                del self._sent[number]
                self._looked_at.discard(number)

    def _send(self) -> None:
        while self._waiting and len(self._sent) < self._room:
            some = self._next_tasks()
            message = Message.of(
                [self._tasks[one.index] for one in some],
                whole=some[0].whole,
                seconds=_TOGETHER_SECONDS,
                stops=self._stops,
            )
            try:
                sent = message if self._is_here else message.packed()
                future = self._executor.submit(perform, sent)
            except Exception as error:  # noqa: BLE001 - of an executor that was shut down, or broke
                future = _Refused(error)
            number = next(self._numbers)
            self._sent[number] = _Sent(future, some)
            tell = getattr(future, "add_done_callback", None)
            if callable(tell):
                tell(lambda _, number=number: self._ended.put(number))
            else:
                self._looked_at.add(number)

    def _next_tasks(self) -> list[_Waiting]:
        """Take the tasks of the next message from the waiting tasks."""
        some = [self._waiting.popleft()]
        size = 1 if some[0].alone else self._size()
        while len(some) < size and self._waiting:
            one = self._waiting[0]
            if one.alone or one.whole != some[0].whole:
                break
            some.append(self._waiting.popleft())
        return some

    def _size(self) -> int:
        """Return how many tasks go together.

        The number leaves work for every worker. It is only a part of the tasks known to be fast,
        because later ones may be slower.
        """
        if self._is_here or not self._done:
            return 1
        each = max(self._each, 1e-6)
        fair = len(self._waiting) / (2 * len(self._workers))
        size = min(_TOGETHER_SECONDS / each, max(fair, _LEAST_SECONDS / each))
        return max(1, min(int(size), self._done // 2, _MOST_TOGETHER))

    def _wait(self) -> int | None:
        """Return a completed message; None if more messages should be sent first."""
        while True:
            for number in self._looked_at:
                if self._sent[number].future.done():
                    return number
            pauses = [_LOOK] if self._looked_at else []
            if self._waiting:
                pauses.append(max(0.0, self._widened + _PATIENCE - time.monotonic()))
            try:
                number = self._ended.get(timeout=min(pauses, default=None))
            except queue.Empty:
                if self._waiting and time.monotonic() >= self._widened + _PATIENCE:
                    self._widened = time.monotonic()
                    self._room *= 2
                    return None
                continue
            if number in self._sent:  # else it was canceled, and forgotten
                return number

    def _ends_of(self, sent: _Sent) -> list[tuple[int, Done | Failed]]:
        """Return the results of a message's tasks; queue tasks again that must be resent."""
        # Another worker may have received it. A worker that still lacks it asks again.
        self._asked -= {one.asked_by for one in sent.tasks if one.asked_by is not None}
        try:
            error = sent.future.exception()
            reply = None if error is not None else _reply(sent)
        except CancelledError:
            return []
        except Exception as unreadable:  # noqa: BLE001 - what comes back may be of any class
            error, reply = unreadable, None
        if reply is None:
            if error is not None and not isinstance(error, Exception):
                raise error
            assert error is not None
            if len(sent.tasks) == 1:
                return [(sent.tasks[0].index, Failed(error, ""))]
            # One of them may have ended its worker: send each one separately, so only that one
            # fails.
            self._wait_again(replace(one, alone=True) for one in sent.tasks)
            return []
        self._note(reply)
        ended: list[tuple[int, Done | Failed]] = []
        again = []
        for one, answer in zip(sent.tasks, reply.answers, strict=True):
            if isinstance(answer, (Done, Failed)):
                ended.append((one.index, answer))
            elif isinstance(answer, Lacking):
                again.append(self._with_what_lacks(one, reply.worker))
            else:
                again.append(one)
        self._wait_again(again)
        return ended

    def _with_what_lacks(self, one: _Waiting, worker: bytes) -> _Waiting:
        """Return the form of a task for a worker that lacks its shared values."""
        digests = tuple(shared.digest for shared in self._tasks[one.index].shared.values())
        if (worker, digests) not in self._asked or one.lacked == _MOST_LACKED:
            self._asked.add((worker, digests))
            return _Waiting(one.index, one.alone, one.lacked, (worker, digests))
        # It is on its way there, ahead of this one.
        return _Waiting(one.index, one.alone, one.lacked + 1)

    def _note(self, reply: Reply) -> None:
        """Record the facts in a reply: the worker, the duration, and that more can be sent."""
        self._workers.add(reply.worker)
        self._widened = time.monotonic()
        done = sum(isinstance(answer, (Done, Failed)) for answer in reply.answers)
        if done:
            self._room += 1
            each = reply.seconds / done
            self._each = (2 * self._each + each) / 3 if self._done else each
            self._done += done

    def _wait_again(self, some: Any) -> None:
        if not self._is_cancelled:
            self._waiting.extendleft(reversed(list(some)))


@dataclass(frozen=True)
class _Waiting:
    """A task that is to be sent."""

    index: int
    alone: bool = False
    lacked: int = 0
    """How often it was sent without its shared values to a worker that waits for them."""
    asked_by: tuple[bytes, tuple[str, ...]] | None = None
    """The worker that lacks shared values, and these values, which are sent with the task."""

    @property
    def whole(self) -> bool:
        """Whether it is sent with the values that it shares with others."""
        return self.asked_by is not None


@dataclass(frozen=True)
class _Sent:
    """A message that was sent."""

    future: Any
    tasks: list[_Waiting]


class _Refused:
    """The future of a message that the executor did not take."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def done(self) -> bool:
        return True

    def exception(self) -> Exception:
        return self._error

    def cancel(self) -> bool:
        return True


def _reply(sent: _Sent) -> Reply:
    found = sent.future.result()
    reply = pickle.loads(found) if isinstance(found, bytes) else found  # noqa: S301 - our worker's
    if isinstance(reply, Reply):
        return reply
    error = CulaunchError(f"the executor returned {spell(found)} instead of the answer of a worker")
    return Reply(tuple(Failed(error, "") for _ in sent.tasks), b"", 0.0)
