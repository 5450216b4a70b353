"""Tracing kinds of arguments without a call: the kinds, and every path of each."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._farm.by_name import find, name_of
from culaunch._farm.progress import checked_progress
from culaunch._farm.run import checked_executor, run_all
from culaunch._farm.task import Task
from culaunch._function.declarations.annotations import Array
from culaunch._function.programs.program import MOST_PATHS
from culaunch._function.programs.record import Notes
from culaunch._function.tracing.runs import Run, trace
from culaunch._launch.formats.dtype import BY_NAME

if TYPE_CHECKING:
    import concurrent.futures
    from collections.abc import Callable, Iterator

    from culaunch._farm.progress import Progress
    from culaunch._function.declarations.declaration import Declaration
    from culaunch._function.programs.record import Register
    from culaunch._function.tracing.kinds import Kind

_MOST_DECISIONS = 256


def explore(
    declaration: Declaration, kind: Kind, notes: Notes, *, both_sides: bool
) -> Iterator[Run]:
    """Yield a run for each path of a kind; raise ValueError if there are too many."""
    # Paths that are known to exist but did not run yet, as their first decisions.
    waiting: list[tuple[bool, ...]] = [()]
    count = 0
    while waiting:
        start = waiting.pop()
        decisions: list[bool] = []
        others: list[tuple[bool, ...]] = []

        def decide(
            _: Register,
            likely: bool,
            start: tuple[bool, ...] = start,
            decisions: list[bool] = decisions,
            others: list[tuple[bool, ...]] = others,
        ) -> bool:
            at = len(decisions)
            if at == _MOST_DECISIONS:
                raise ValueError(
                    f"{declaration.name} makes more than {_MOST_DECISIONS} decisions on one path. "
                    "A loop whose end depends on a size cannot be followed without a call: trace "
                    "with both_sides=False, or call the function"
                )
            # While the path follows an earlier run, its decisions are given. After that, it takes
            # the likely side, and the other side of each decision becomes a later path. This runs
            # every path once.
            answer = start[at] if at < len(start) else likely
            if at >= len(start):
                others.append((*decisions, not answer))
            decisions.append(answer)
            return answer

        run = trace(declaration, kind, None, notes, decide)
        if both_sides:
            waiting.extend(reversed(others))
        elif run.is_error and others:  # the body refuses the likely side
            waiting.append(others[-1])
        count += 1
        if count > MOST_PATHS:
            raise ValueError(
                f"{declaration.name} has more than {MOST_PATHS} paths for one kind of arguments: "
                "trace with both_sides=False, and call it with the arguments of the other paths"
            )
        yield run


def explore_elsewhere(
    function: Callable[..., Any],
    kinds: tuple[Kind, ...],
    both_sides: bool,
    executor: concurrent.futures.Executor | None,
    progress: bool | Callable[[Progress], object],
    *,
    return_exceptions: bool = False,
) -> None:
    """Let the workers of an executor, if any, trace kinds, to fill the caches that they share.

    Exceptions of the workers are raised, or ignored with `return_exceptions`.

    Raises
    ------
    TypeError, ValueError
        If tracing raised it, or a worker could not find the function.
    """
    checked_progress(progress)
    if executor is None:
        return
    checked_executor(executor)
    # Workers find the function by name, as pickle does, so the name must mean this function here.
    module, name = name_of("the function", function)
    if find(module, name) is not function:
        raise ValueError(
            f"{module}.{name} must be the function to specialize, because workers find it by this "
            "name: rename the function, or leave out executor="
        )
    tasks = [
        Task(
            _count_paths,
            {"module": module, "name": name, "kind": kind, "both_sides": both_sides},
            f"kind {index} of {name}",
        )
        for index, kind in enumerate(kinds)
    ]
    run_all(tasks, executor, progress=progress, return_exceptions=return_exceptions)


def _count_paths(module: str, name: str, kind: Kind, both_sides: bool) -> int:
    """Trace a kind in a worker, to fill the caches."""
    declaration = find(module, name).declaration
    return sum(1 for _ in explore(declaration, kind, Notes(), both_sides=both_sides))


def kinds_of(declaration: Declaration, parameters: dict[str, Any]) -> tuple[Kind, ...]:
    """Return the requested kinds, one for each element type."""
    for name in parameters:
        if name not in declaration.names:
            raise TypeError(
                f"{declaration.name} has no parameter {spell(name)}: its parameters are "
                f"{', '.join(declaration.names) or 'none'}"
            )
    given = [
        _requested(declaration, index, name, parameters)
        for index, name in enumerate(declaration.names)
    ]
    choices = {name: _dtypes(what) for name, what in zip(declaration.names, given, strict=True)}
    free = {
        name: dtypes
        for name, what, dtypes in zip(declaration.names, given, choices.values(), strict=True)
        if isinstance(what, Array) and what.same is None
    }
    kinds = []
    # One kind for every combination of the free element types. `same` copies another parameter's
    # type.
    for combination in itertools.product(*free.values()):
        chosen = dict(zip(free, combination, strict=True))
        kinds.append(
            tuple(
                _entry(declaration, name, what, chosen)
                for name, what in zip(declaration.names, given, strict=True)
            )
        )
    return tuple(kinds)


def _requested(declaration: Declaration, index: int, name: str, parameters: dict[str, Any]) -> Any:
    if name in parameters:
        return parameters[name]
    if name in declaration.defaults:
        value = declaration.defaults[name]
        # A default number is like any other number, which may differ from call to call.
        return type(value) if type(value) in (int, float) else value
    want = declaration.wanted.get(index)
    if want is not None and want.array is not None:
        return want.array
    if want is not None and len(want.plain) == 1 and want.plain[0] in (int, float):
        return want.plain[0]
    raise TypeError(
        f'specialize() of {declaration.name} is missing {name}: give {name}=cl.Array("float32", '
        f'"n"), {name}=float, or a value'
    )


def _dtypes(what: Any) -> tuple[str, ...]:
    if not isinstance(what, Array) or what.dtypes is None:
        return ()
    return tuple(dtype.name for dtype in what.dtypes)


def _entry(declaration: Declaration, name: str, what: Any, chosen: dict[str, str]) -> Any:
    if isinstance(what, Array):
        dtype = chosen.get(what.same if what.same is not None else name)
        if dtype is None and what.dtypes:
            dtype = what.dtypes[0].name
        rank = what.rank
        if dtype is None or rank is None:
            raise TypeError(
                f"specialize() of {declaration.name} needs the element type and the dimensions of "
                f'{name}, such as cl.Array("float32", "b n") (got {what!r})'
            )
        return ("array", BY_NAME[dtype].number, rank, False)
    if what is None or type(what) is bool:
        return what
    if what is int or type(what) is int:
        return int
    if what is float or type(what) is float:
        return float
    is_empty = type(what) is list and not what
    if is_empty or (
        isinstance(what, (list, tuple)) and any(isinstance(one, Array) for one in what)
    ):
        entries = tuple(_entry(declaration, name, one, chosen) for one in what)
        return ("list" if isinstance(what, list) else "tuple", entries)
    return ("value", what)
