"""A body's writes and results on all paths, found by tracing it without a call."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._function.body.plain_kernels import PlainKernelError
from culaunch._function.calling.specialize import explore
from culaunch._function.programs.record import Notes
from culaunch._function.tracing.kinds import arrays_of, described_value
from culaunch._function.tracing.runs import trace
from culaunch._launch.formats.dtype import BY_NAME
from culaunch._torch.results import ResultReader, Template, plain, with_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from culaunch._function import Function
    from culaunch._function.tracing.kinds import Kind
    from culaunch._function.tracing.runs import Run
    from culaunch._torch.schema import Parameter

_DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8")
_RANKS = (2, 1, 3, 4, 0, 5)
_NUMBERS = {"SymInt": int, "float": float}
# Another kind of arguments does not avoid these. A filter may turn warnings into errors.
_CERTAIN = (PlainKernelError, Warning)


class Findings:
    """The facts about a body.

    Parameters
    ----------
    name : str
    names : tuple of str
        The parameters' names.
    is_free : bool, optional
        Whether results may be anything that can be rebuilt: dicts, arguments.

    Attributes
    ----------
    mutates, unknown : set of int
        Parameters whose arrays are written, and those that the kernels' signatures do not decide.
    outputs : tuple of (str or None), or None
        The types of its results in a schema, with None for None. None if unknown.
    template : tuple
        How to rebuild a result from the outputs.
    """

    def __init__(self, name: str, names: tuple[str, ...], *, is_free: bool = False) -> None:
        self.name = name
        self.names = names
        self.is_free = is_free
        self.mutates: set[int] = set()
        self.unknown: set[int] = set()
        self.outputs: tuple[str | None, ...] | None = None
        self.template: Template = ("none",)

    def add(
        self, uses: dict[int, set[str]], effects: Iterable[Any] | None, array_arguments: int
    ) -> None:
        """Record the facts of a path.

        Raises
        ------
        TypeError
            If it returns what no operator can.
        """
        self.mutates |= {one for one, accesses in uses.items() if "write" in accesses}
        self.unknown |= {one for one, accesses in uses.items() if "unknown" in accesses}
        if effects is None:
            return
        ends = tuple(effects)
        reader = ResultReader(self.name, self.names, array_arguments, ends)
        # Only the return value of a path matters here.
        template = reader.read(ends[-1].value)
        outputs: tuple[str | None, ...] = tuple(reader.outputs)
        if not self.is_free:
            template = plain(self.name, self.names, template)
            outputs = with_none(template, reader.outputs)
        # There is one schema: torch computes shapes from it before the path of a call is known.
        if self.outputs is not None and (outputs, template) != (self.outputs, self.template):
            raise TypeError(
                f"{self.name} returns {_words(self.outputs)} on one path and {_words(outputs)} on "
                "another, but a torch operator must always return the same types"
            )
        self.outputs, self.template = outputs, template


@untraced
def find(
    function: Function[..., Any],
    parameters: tuple[Parameter, ...],
    call: tuple[Kind, tuple[Any, ...]] | None = None,
    *,
    both_sides: bool = True,
) -> Findings:
    """Trace a body on every path for kinds of arguments that it accepts, and return its facts.

    `call` is the kind of a call and its arguments, which are tried first; results may then be
    rebuilt freely. Without `both_sides`, only the likely path of a kind is traced. Each path of a
    Triton kernel is one more compilation, and all paths write the same arrays.

    Raises
    ------
    TypeError
        If there is no such kind, or the body returns something that no operator can return.
    """
    findings = Findings(function.__name__, function.declaration.names, is_free=call is not None)
    # Facts from calls come first, because they are about arguments that were really passed.
    for path in function._paths():
        findings.add(*path)
    if not function._has_body:
        return findings
    # With a call, only its own kind matters. Otherwise, any kind that the body accepts will do.
    error = None if call is None else _learn_call(function, *call, findings)
    is_found = findings.outputs is not None
    # A body may return something else if an argument is omitted. Trace it with and without each
    # optional argument, up to four at a time.
    absent = [i for i, one in enumerate(parameters) if one.is_optional]
    # Fewest omissions first, because most functions are called with all arguments.
    for count in range(min(len(absent), 4) + 1):
        for left_out in itertools.combinations(absent, count):
            problem = _learn(function, _kinds(parameters, left_out), findings, both_sides)
            is_found = is_found or problem is None
            error = error or problem
    if not is_found:
        raise TypeError(
            f"{function.__name__}: the results are unknown, because the body accepted none of the "
            f"arguments that were tried ({type(error).__name__}: {error}): annotate its arrays, "
            'as in x: cl.Array("float32", "b n"), call it once before, or pass schema='
        ) from error
    return findings


def _learn(
    function: Function[..., Any], kinds: Iterator[Kind], findings: Findings, both_sides: bool = True
) -> Exception | None:
    """Trace the first kind that the body accepts; if it accepts none, return its error."""
    error: Exception | None = None
    for kind in kinds:
        runs = _runs(function, kind, both_sides)
        if isinstance(runs, Exception):
            error = error or runs
            continue
        for run in runs:
            findings.add(run.uses, None if run.is_error else run.record.effects, arrays_of(kind))
        if not all(run.is_error for run in runs):
            return None
        error = error or ValueError("every path of it ends in an error")
    return error


def _learn_call(
    function: Function[..., Any], kind: Kind, values: tuple[Any, ...], findings: Findings
) -> Exception | None:
    """Trace the kind of a call. If the body needs numbers, trace the path of the call."""
    error = _learn(function, iter((kind,)), findings)
    if error is None:
        return None
    try:
        run = trace(function.declaration, kind, values, Notes())
    except _CERTAIN:
        raise
    except Exception as problem:  # noqa: BLE001 - the body's
        return problem
    findings.add(run.uses, run.record.effects, arrays_of(kind))
    return None


def _runs(function: Function[..., Any], kind: Kind, both_sides: bool) -> list[Run] | Exception:
    """Run a body on all paths. If there are too many, or it needs numbers, run the likely one."""
    problem: Exception | None = None
    # One path tells all about a fused function, which may have more paths than a program has.
    sides = (True, False) if both_sides and not function._paths_are_alike else (False,)
    ways: list[Callable[[Function[..., Any], Kind], list[Run]]]
    ways = [*(partial(_explored, both_sides=one) for one in sides), _as_called]
    for way in ways:
        try:
            return way(function, kind)
        except _CERTAIN:  # noqa: PERF203
            raise
        except Exception as error:  # noqa: BLE001 - the body's, on made-up arguments
            problem = problem or error
    assert problem is not None
    return problem


def _explored(function: Function[..., Any], kind: Kind, *, both_sides: bool) -> list[Run]:
    return list(explore(function.declaration, kind, Notes(), both_sides=both_sides))


def _as_called(function: Function[..., Any], kind: Kind) -> list[Run]:
    """Run it as in a call, with described arrays and small numbers."""
    values = tuple(described_value(entry) for entry in kind)
    return [trace(function.declaration, kind, values, Notes())]


def _kinds(parameters: tuple[Parameter, ...], absent: tuple[int, ...]) -> Iterator[Any]:
    # If annotations leave this open, try the most common ranks and element types. The first kind
    # that the body accepts is enough.
    for rank, dtypes in _layouts(parameters):
        for flag in (False, True):
            yield tuple(
                None if i in absent else _entry(one, parameters, rank, dtype, flag)
                for i, (one, dtype) in enumerate(zip(parameters, dtypes, strict=True))
            )
            if not any(one.type == "bool" for one in parameters):
                break


def _layouts(parameters: tuple[Parameter, ...]) -> Iterator[tuple[int, list[str]]]:
    """List ranks and element types: the same for all arrays, then one mask or array of indices."""
    count = len(parameters)
    for rank, dtype in itertools.islice(itertools.product(_RANKS, _DTYPES), 24):
        yield rank, [dtype] * count
    arrays = [i for i, one in enumerate(parameters) if one.type.startswith("Tensor")]
    for rank, other in itertools.product(_RANKS[:2], ("bool", "int64")):
        for i in arrays if len(arrays) > 1 else ():
            yield rank, [other if i == j else _DTYPES[0] for j in range(count)]


def _entry(
    one: Parameter, parameters: tuple[Parameter, ...], rank: int, dtype: str, flag: bool
) -> Any:
    if one.array is not None:
        other = next((p for p in parameters if p.name == one.array.same), one)
        dtypes = (other.array or one.array).dtypes
        number = (dtypes[0] if dtypes else BY_NAME[dtype]).number
        has_rank = one.array.rank if one.array.rank is not None else rank
        entry = ("array", number, has_rank, False)
        return ("list", (entry, entry)) if one.type == "Tensor[]" else entry
    if one.type in _NUMBERS:
        return _NUMBERS[one.type]
    if one.type == "bool":
        return flag
    given = isinstance(one.default, str) or one.type == "ScalarType"
    if one.type == "ScalarType":
        return ("value", BY_NAME[dtype])
    return ("value", one.default if given else "")


def _words(outputs: tuple[str | None, ...]) -> str:
    return "(" + ", ".join("None" if one is None else one for one in outputs) + ")"
