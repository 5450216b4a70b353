"""``compile_many``: several compiles at once, in threads or wherever an executor runs them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from culaunch._compile._arch import resolve_arch
from culaunch._compile._compile import compile as compile_one
from culaunch._errors import MissingDependencyError

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Iterable, Iterator

    from culaunch._image import Image

    Request = str | os.PathLike[str] | Mapping[str, Any]


def compile_many(
    requests: Iterable[Request],
    *,
    jobs: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[int, int], None] = False,
    **common: Any,
) -> list[Image]:
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
    **common
        Arguments of :func:`compile` for every request; a request's own win.

    Returns
    -------
    list of Image
        In the order of the requests.

    Raises
    ------
    CompileError
        What the first request that failed raised, with a note of which one; those that had not
        begun are not compiled.
    """
    work = [_arguments(request, common) for request in requests]
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs must be a positive int (got {jobs!r})")
    if jobs is not None and executor is not None:
        raise ValueError("give jobs or executor, not both: an executor has its own workers")
    if not work:
        return []
    if executor is not None:
        # The workers may have no GPU: what "current" means is decided here.
        for arguments in work:
            arguments["arch"] = resolve_arch(arguments.get("arch"))
        return _run(executor, work, progress)
    from concurrent.futures import ThreadPoolExecutor

    count = min(jobs or _cpus(), len(work))
    with ThreadPoolExecutor(count, "culaunch-compile") as threads:
        return _run(threads, work, progress)


def _run(
    executor: concurrent.futures.Executor,
    work: list[dict[str, Any]],
    progress: bool | Callable[[int, int], None],
) -> list[Image]:
    from concurrent.futures import as_completed

    futures = [executor.submit(_compile, arguments) for arguments in work]
    try:
        with _progress(progress, len(work)) as advance:
            for done, future in enumerate(as_completed(futures), 1):
                if future.exception() is not None:
                    break
                advance(done)
    finally:
        for future in futures:
            future.cancel()
    images = []
    for index, future in enumerate(futures):
        if future.cancelled():
            continue
        error = future.exception()
        if error is not None:
            _note(error, index, work[index])
            raise error
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
    return {**common, "source": request}


def _note(error: BaseException, index: int, arguments: Mapping[str, Any]) -> None:
    source = arguments.get("name") or arguments["source"]
    shown = source if isinstance(source, os.PathLike) or "\n" not in source else "text"
    # Exceptions carry notes from Python 3.11 on.
    if hasattr(error, "add_note"):
        error.add_note(f"in request {index} of compile_many ({shown})")


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
                "progress=True needs rich: pip install rich, or pass a callable"
            ) from error
        with Progress(transient=True) as bar:
            task = bar.add_task("compiling", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None  # noqa: ARG005


def _cpus() -> int:
    # Not os.cpu_count(): a container or a batch system may allow fewer.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
