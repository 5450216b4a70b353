"""``compile_many``: several compiles at once, in threads or wherever an executor runs them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from culaunch._base.checks import checked_flag
from culaunch._base.values import spell
from culaunch._compile.architectures import resolve_arch
from culaunch._compile.compilation import compile as compile_one
from culaunch._errors import MissingDependencyError

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Iterator

    from culaunch._image import Image

    Request = str | os.PathLike[str] | Mapping[str, Any]


@overload
def compile_many(
    requests: Iterable[Request],
    *,
    jobs: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[int, int], None] = False,
    return_exceptions: Literal[False] = False,
    **common: Any,
) -> list[Image]: ...


@overload
def compile_many(
    requests: Iterable[Request],
    *,
    jobs: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[int, int], None] = False,
    return_exceptions: Literal[True],
    **common: Any,
) -> list[Image | Exception]: ...


def compile_many(
    requests: Iterable[Request],
    *,
    jobs: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[int, int], None] = False,
    return_exceptions: bool = False,
    **common: Any,
) -> list[Image] | list[Image | Exception]:
    """Compile several sources at once; compiling leaves the interpreter free for the others.

    Parameters
    ----------
    requests : iterable of str, os.PathLike or Mapping
        Each one is a source, or a mapping of :func:`compile`'s arguments with ``"source"`` in it.
    jobs : int, optional
        How many threads; by default as many as this process may use CPUs.
    executor : concurrent.futures.Executor, optional
        What runs the compiles instead: a process pool, or the executor of a cluster. The requests
        and the images are pickled where it needs that.
    progress : bool or callable, optional
        True draws a bar (which needs ``rich``); a callable gets (done, total) after each one.
    return_exceptions : bool, optional
        Compile every request, and return what one raised in its place. Without it the first one
        that fails is raised; the images that were made are in the cache, if it is used, so that
        another call with the rest is quick.
    **common
        Arguments of :func:`compile` for every request; a request's own win.

    Returns
    -------
    list of Image
        In the order of the requests.

    Raises
    ------
    CompileError
        What the first request that failed raised; its message begins with which one it was. Those
        that had not begun are not compiled.
    ValueError, TypeError
        The same of a request that is none, or if another argument is not what it should be.
    """
    if isinstance(requests, (str, bytes, os.PathLike, Mapping)) or not isinstance(
        requests, Iterable
    ):
        raise TypeError(f"requests must be a list of sources or mappings (got {spell(requests)})")
    if not callable(progress):
        checked_flag("progress", progress)
    checked_flag("return_exceptions", return_exceptions)
    work = [_arguments(request, common) for request in requests]
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs must be a positive int (got {jobs!r})")
    if jobs is not None and executor is not None:
        raise ValueError("give jobs or executor, not both: an executor has its own workers")
    if not work:
        return []
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be a concurrent.futures.Executor (got {spell(executor)})")
    if executor is not None:
        # The workers may have no GPU: what "current" means is decided here.
        for arguments in work:
            arguments["arch"] = resolve_arch(arguments.get("arch"))
        return _run(executor, work, progress, return_exceptions)
    from concurrent.futures import ThreadPoolExecutor

    count = min(jobs or _cpus(), len(work))
    with ThreadPoolExecutor(count, "culaunch-compile") as threads:
        return _run(threads, work, progress, return_exceptions)


def _run(
    executor: concurrent.futures.Executor,
    work: list[dict[str, Any]],
    progress: bool | Callable[[int, int], None],
    return_exceptions: bool,
) -> list[Image] | list[Image | Exception]:
    from concurrent.futures import as_completed

    futures = [executor.submit(_compile, arguments) for arguments in work]
    try:
        with _progress(progress, len(work)) as advance:
            for done, future in enumerate(as_completed(futures), 1):
                if future.exception() is not None and not return_exceptions:
                    break
                advance(done)
    finally:
        for future in futures:
            future.cancel()
    images: list[Any] = []
    failed = [
        index
        for index, future in enumerate(futures)
        if not future.cancelled() and future.exception() is not None
    ]
    for index, future in enumerate(futures):
        if future.cancelled():
            continue
        error = future.exception()
        if error is not None:
            _say_which(error, index, work[index], len(failed) - 1)
            if not (return_exceptions and isinstance(error, Exception)):
                raise error
            images.append(error)
            continue
        images.append(future.result())
    return images


def _compile(arguments: dict[str, Any]) -> Image:
    """Run one compile; at module level, so that it can be pickled."""
    return compile_one(**arguments)


def _arguments(request: Request, common: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(request, Mapping):
        if "source" not in request:
            raise ValueError(f"a request must have 'source' (got {sorted(request)})")
        return {**common, **request}
    if not isinstance(request, (str, os.PathLike)):
        raise TypeError(f"requests must hold sources or mappings (got {spell(request)})")
    return {**common, "source": request}


def _say_which(error: BaseException, index: int, arguments: Mapping[str, Any], others: int) -> None:
    source = arguments.get("name") or arguments["source"]
    is_text = isinstance(source, str) and any(mark in source for mark in "\n;{#")
    shown = (
        "a text" if is_text else os.fspath(source) if isinstance(source, os.PathLike) else source
    )
    which = f"request {index} of compile_many ({shown})"
    if others:
        which += f", and {others} more failed"
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{which}: {error.args[0]}",)
    elif hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note(f"in {which}")


@contextlib.contextmanager
def _progress(
    progress: bool | Callable[[int, int], None], total: int
) -> Iterator[Callable[[int], None]]:
    if callable(progress):
        yield lambda done: progress(done, total)
    elif progress:
        try:
            from rich.progress import Progress
        except ImportError as error:
            raise MissingDependencyError(
                "progress=True needs rich: python -m pip install rich; or pass a callable"
            ) from error
        with Progress(transient=True) as bar:
            task = bar.add_task("compiling", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None  # noqa: ARG005


def _cpus() -> int:
    # Not os.cpu_count(): a container or a batch system may allow fewer.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
