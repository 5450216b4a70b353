"""``compile_many``: several compiles at once, in threads or wherever an executor runs them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, overload

from culaunch._base.checks import checked_flag
from culaunch._base.values import spell
from culaunch._compile.compilation import compile as compile_one
from culaunch._compile.parcels import Parcels
from culaunch._compile.source import is_source_text
from culaunch._farm.progress import checked_progress
from culaunch._farm.run import checked_executor, run_all, shares_memory
from culaunch._farm.task import Task

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable

    from culaunch._farm.progress import Progress
    from culaunch._image import Image

    Request = str | os.PathLike[str] | Mapping[str, Any]


@overload
def compile_many(
    requests: Iterable[Request],
    *,
    jobs: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[Progress], object] = False,
    return_exceptions: Literal[False] = False,
    **common: Any,
) -> list[Image]: ...


@overload
def compile_many(
    requests: Iterable[Request],
    *,
    jobs: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[Progress], object] = False,
    return_exceptions: Literal[True],
    **common: Any,
) -> list[Image | Exception]: ...


def compile_many(
    requests: Iterable[Request],
    *,
    jobs: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    progress: bool | Callable[[Progress], object] = False,
    return_exceptions: bool = False,
    **common: Any,
) -> list[Image] | list[Image | Exception]:
    """Compile several sources in parallel; compilers do not hold the interpreter lock.

    Parameters
    ----------
    requests : iterable of str, os.PathLike or Mapping
        Each item is a source, or a mapping of :func:`culaunch.compile`'s arguments that includes
        ``"source"``.
    jobs : int, optional
        Number of threads; by default the number of CPUs that this process may use.
    executor : concurrent.futures.Executor, optional
        An executor that runs the compilations instead. It may be a process pool, or belong to a
        cluster (Dask, MPI, submitit, or :class:`culaunch.compiling.RayExecutor`). Requests and
        images are pickled if necessary. Headers and large sources are sent once to each worker.
        Paths become absolute, and must mean the same file on the worker. A worker uses its own
        cache, or the given one.
    progress : bool or callable, optional
        True shows a line on a terminal. A callable receives a :class:`culaunch.compiling.Progress`
        after each request.
    return_exceptions : bool, optional
        Compile every request, and return an exception in place of a failed one's image. Otherwise
        the first failure is raised. Images that were compiled are in the cache, if it is used, and
        another call with the rest is quick.
    **common
        Arguments of :func:`culaunch.compile` for every request. A request's own arguments take
        precedence.

    Returns
    -------
    list of Image
        The images in the order of the requests.

    Raises
    ------
    CompileError
        If a request fails: the first failure, whose message begins with the request's number.
        Requests that had not started are not compiled.
    ValueError, TypeError
        If a request or another argument is invalid.

    Examples
    --------
    >>> requests = [source, {"source": source, "arch": "compute_90"}]
    >>> images = cl.compiling.compile_many(requests, arch="compute_80")
    >>> [image.arch for image in images]
    [('compute_80',), ('compute_90',)]
    """
    if isinstance(requests, (str, bytes, os.PathLike, Mapping)) or not isinstance(
        requests, Iterable
    ):
        raise TypeError(f"requests must be a list of sources or mappings (got {spell(requests)})")
    checked_progress(progress)
    checked_flag("return_exceptions", return_exceptions)
    work = [_arguments(request, common) for request in requests]
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs must be a positive int (got {jobs!r})")
    if jobs is not None and executor is not None:
        raise ValueError("give jobs or executor, not both: an executor has its own workers")
    if not work:
        return []
    if executor is not None:
        checked_executor(executor)
        return _run(executor, work, progress, return_exceptions)
    # Threads are enough, because NVRTC runs without the GIL.
    with ThreadPoolExecutor(min(jobs or _cpus(), len(work)), "culaunch-compile") as threads:
        return _run(threads, work, progress, return_exceptions)


def _run(
    executor: concurrent.futures.Executor,
    work: list[dict[str, Any]],
    progress: bool | Callable[[Progress], object],
    return_exceptions: bool,
) -> list[Any]:
    # Threads share the caller's objects, so nothing is pickled.
    prepare = _as_it_is if shares_memory(executor) else Parcels().pack
    tasks = [
        prepare(f"request {index} of compile_many ({_shown(arguments)})", arguments)
        for index, arguments in enumerate(work)
    ]
    return run_all(tasks, executor, progress=progress, return_exceptions=return_exceptions)


def _as_it_is(label: str, arguments: dict[str, Any]) -> Task:
    return Task(compile_one, arguments, label)


def _arguments(request: Request, common: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(request, Mapping):
        if "source" not in request:
            raise ValueError(f"a request must have 'source' (got {spell(list(request))})")
        return {**common, **request}
    if not isinstance(request, (str, os.PathLike)):
        raise TypeError(f"requests must contain only sources or mappings (got {spell(request)})")
    return {**common, "source": request}


def _shown(arguments: Mapping[str, Any]) -> Any:
    source = arguments.get("name") or arguments["source"]
    if is_source_text(source):
        return "a text"
    return os.fspath(source) if isinstance(source, os.PathLike) else source


def _cpus() -> int:
    # Not os.cpu_count(), because a container or a batch system may allow fewer.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
