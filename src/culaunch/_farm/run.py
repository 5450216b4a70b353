"""Running tasks on an executor: in order, with what failed by request, and stopped when asked."""

from __future__ import annotations

import queue
from collections import deque
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._errors import CulaunchError
from culaunch._farm.progress import metered
from culaunch._farm.task import Failed, Lacking, Made, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._farm.progress import Progress
    from culaunch._farm.task import Task

# So many tasks with shared arguments are sent before the first answer; each answer of a worker that
# has them lets two more go. Whoever lacks them is so found before all tasks are in its queue.
_FIRST_SENT = 8
# Seconds between looks at jobs that cannot say when they are done.
_LOOK = 0.2


def run_all(
    tasks: Sequence[Task],
    executor: Any,
    *,
    progress: bool | Callable[[Progress], object] = False,
    return_exceptions: bool = False,
) -> list[Any]:
    """Run tasks and return their results in order.

    Parameters
    ----------
    tasks : sequence of Task
        What to do.
    executor
        Something whose ``submit(function, argument)`` gives a future: of ``concurrent.futures``, or
        an object with ``done()``, ``exception()``, ``result()`` and ``cancel()``.
    progress : bool or callable
        Whether to draw a bar, or who is told a :class:`Progress` after each task.
    return_exceptions : bool
        Whether an exception stands in the place of a result. Without it the failed task that comes
        first is raised when those that had begun have ended; the others are cancelled.

    Raises
    ------
    Exception
        What a task raised, with its label.
    """
    answers: list[Made | Failed | None] = [None] * len(tasks)
    run = _Run(tasks, executor)
    try:
        with metered(progress, len(tasks)) as meter:
            while (found := run.next()) is not None:
                index, answer = found
                answers[index] = answer
                failed = isinstance(answer, Failed)
                meter.count(failed=failed)
                if failed and not return_exceptions:
                    run.cancel()
    finally:
        # Also when the caller was interrupted, or what it gave for progress raised: nothing begins
        # any more, and what runs is not waited for.
        run.cancel()
    return _results(tasks, answers, return_exceptions=return_exceptions)


def checked_executor(executor: Any) -> None:
    """Raise TypeError for what can run nothing."""
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(
            "executor must have submit(), as a concurrent.futures.Executor has "
            f"(got {spell(executor)})"
        )


class _Run:
    """Tasks on their way."""

    def __init__(self, tasks: Sequence[Task], executor: Any) -> None:
        self._tasks = tasks
        self._executor = executor
        self._waiting = deque((index, False) for index in range(len(tasks)))
        self._sent: dict[int, Any] = {}
        self._looked_at: set[int] = set()
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._room = _FIRST_SENT if any(task.shared for task in tasks) else len(tasks)

    def next(self) -> tuple[int, Made | Failed] | None:
        """Return a task that has ended and its answer; None when there is none left."""
        while True:
            self._send()
            if not self._sent:
                return None
            index = self._wait()
            future = self._sent.pop(index)
            self._looked_at.discard(index)
            answer = _answer(future)
            if isinstance(answer, Lacking):
                self._waiting.appendleft((index, True))
                continue
            if answer is None:
                continue
            self._room += 1
            return index, answer

    def cancel(self) -> None:
        """Let nothing begin any more; forget what cannot say that it was cancelled."""
        self._waiting.clear()
        for index, future in list(self._sent.items()):
            cancelled = future.cancel()
            if index in self._looked_at or cancelled:
                del self._sent[index]
                self._looked_at.discard(index)

    def _send(self) -> None:
        # An answer takes a task off and widens the room by one: the number on the way doubles with
        # each round, so that thousands of workers are busy after a few.
        while self._waiting and len(self._sent) < self._room:
            index, whole = self._waiting.popleft()
            try:
                future = self._executor.submit(perform, self._tasks[index].message(whole=whole))
            except Exception as error:  # noqa: BLE001 - of an executor that was shut down, or broke
                future = _Refused(error)
            self._sent[index] = future
            tell = getattr(future, "add_done_callback", None)
            if callable(tell):
                tell(lambda _, index=index: self._ended.put(index))
            else:
                self._looked_at.add(index)

    def _wait(self) -> int:
        while True:
            for index in self._looked_at:
                if self._sent[index].done():
                    return index
            try:
                index = self._ended.get(timeout=_LOOK if self._looked_at else None)
            except queue.Empty:
                continue
            if index in self._sent:  # else it was cancelled, and forgotten
                return index


class _Refused:
    """The future of a task that the executor did not take."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def done(self) -> bool:
        return True

    def exception(self) -> Exception:
        return self._error

    def cancel(self) -> bool:
        return True


def _answer(future: Any) -> Made | Failed | Lacking | None:
    """Return what came of a task: what its worker says, or befell it; None if it was cancelled."""
    try:
        error = future.exception()
    except CancelledError:
        return None
    if error is None:
        answer = future.result()
        if isinstance(answer, (Made, Failed, Lacking)):
            return answer
        return Failed(CulaunchError(f"the executor gave {spell(answer)}, not the answer"), "")
    if not isinstance(error, Exception):
        raise error
    return Failed(error, "")


def _results(
    tasks: Sequence[Task], answers: Sequence[Made | Failed | None], *, return_exceptions: bool
) -> list[Any]:
    others = sum(isinstance(answer, Failed) for answer in answers) - 1
    results = []
    for task, answer in zip(tasks, answers, strict=True):
        if isinstance(answer, Failed):
            error = _labelled(task, answer, others)
            if not return_exceptions:
                raise error
            results.append(error)
        elif answer is not None:
            results.append(answer.value)
        elif return_exceptions:
            results.append(CancelledError(f"{task.label} was cancelled"))
    return results


def _labelled(task: Task, failed: Failed, others: int) -> Exception:
    """Return the exception, which begins with the request that it is of."""
    error = failed.error
    which = task.label + (f", and {others} more failed" if others else "")
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{which}: {error.args[0]}",)
    elif hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note(f"in {which}")
    if failed.trace and error.__traceback__ is None and error.__cause__ is None:
        error.__cause__ = _Elsewhere(failed.trace)
    return error


class _Elsewhere(Exception):  # noqa: N818 - it is never raised, and shows where another one was
    """Where in a worker an exception was raised, as its traceback there."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"
