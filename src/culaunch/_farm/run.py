"""Run tasks on an executor: in order, with errors per request, and with cancellation."""

from __future__ import annotations

import concurrent.futures
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._farm.in_flight import TasksInFlight
from culaunch._farm.message import Done, Failed
from culaunch._farm.progress import metered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culaunch._farm.progress import Progress
    from culaunch._farm.task import Task


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
        The tasks.
    executor
        An object whose ``submit(function, argument)`` returns a future: from
        ``concurrent.futures``, or an object with ``done()``, ``exception()``, ``result()`` and
        ``cancel()``.
    progress : bool or callable
        Whether to draw a bar, or a callable that receives a :class:`culaunch.compiling.Progress`
        after each task.
    return_exceptions : bool
        Whether to return an exception in place of a result. Otherwise the first failed task's
        exception is raised after the running tasks have ended; the others are canceled.

    Raises
    ------
    Exception
        The exception of a task, with its label.
    """
    answers: list[Done | Failed | None] = [None] * len(tasks)
    run = TasksInFlight(
        tasks, executor, is_here=shares_memory(executor), stops=not return_exceptions
    )
    try:
        with metered(progress, len(tasks)) as meter:
            # They end in any order, but the answers keep the order of the requests.
            while (ended := run.next()) is not None:
                for index, answer in ended:
                    answers[index] = answer
                    failed = isinstance(answer, Failed)
                    meter.count(failed=failed)
                    # Those that run go on until they end, and are counted: only then is the message
                    # right that says how many failed.
                    if failed and not return_exceptions:
                        run.cancel()
    finally:
        # Also if the caller was interrupted, or its progress callable raised: no new task begins,
        # and running tasks are not waited for.
        run.cancel()
    return _results(tasks, answers, return_exceptions=return_exceptions)


def checked_executor(executor: Any) -> None:
    """Raise TypeError for an object that is not an executor."""
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(
            "executor must have a method submit(), like concurrent.futures.Executor (got "
            f"{spell(executor)})"
        )


def shares_memory(executor: Any) -> bool:
    """Tell whether an executor's workers are threads of this process."""
    # From Python 3.14 on, a pool of interpreters is a pool of threads, but shares no objects.
    apart = getattr(concurrent.futures, "InterpreterPoolExecutor", ())
    return isinstance(executor, ThreadPoolExecutor) and not isinstance(executor, apart)


def _results(
    tasks: Sequence[Task], answers: Sequence[Done | Failed | None], *, return_exceptions: bool
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
            results.append(CancelledError(f"{task.label} was canceled"))
    return results


def _labelled(task: Task, failed: Failed, others: int) -> Exception:
    """Return the exception, whose message begins with its request."""
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
