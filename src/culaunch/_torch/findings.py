"""What a body does on all its paths, found by tracing it without a call: writes and results."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._function import opcodes as oc
from culaunch._function.effects import Return, View
from culaunch._function.kinds import arrays_of
from culaunch._function.recorded import RecordedFunction
from culaunch._function.specialize import explore
from culaunch._launch.dtype import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from culaunch._function import Function
    from culaunch._function.kinds import Kind
    from culaunch._function.program import Leaf
    from culaunch._function.recorded import AnyFunction
    from culaunch._function.runs import Run
    from culaunch._torch.schema import Parameter

_DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8")
_RANKS = (2, 1, 3, 4, 0, 5)
_NUMBERS = {"SymInt": int, "float": float}
_TYPES = {oc.V_INT: "SymInt", oc.V_FLOAT: "float", oc.V_BOOL: "bool", oc.V_ARRAY: "Tensor"}


class Findings:
    """What is known of a body.

    Attributes
    ----------
    mutates, unknown : set of int
        Parameters whose arrays are written; those of which the kernels do not say it.
    outputs : tuple of (str or None), or None
        The types of what it returns, as a schema has them; None in it for None. None: not known.
    is_tuple : bool
        Whether it returns a tuple.
    """

    def __init__(self, name: str, names: tuple[str, ...]) -> None:
        self.name = name
        self.names = names
        self.mutates: set[int] = set()
        self.unknown: set[int] = set()
        self.outputs: tuple[str | None, ...] | None = None
        self.is_tuple = False

    def add(
        self, uses: dict[int, set[str]], effects: Iterable[Any] | None, array_arguments: int
    ) -> None:
        """Learn from a path.

        Raises
        ------
        TypeError
            If it returns what no operator can.
        """
        self.mutates |= {one for one, accesses in uses.items() if "write" in accesses}
        self.unknown |= {one for one, accesses in uses.items() if "unknown" in accesses}
        if effects is None:
            return
        effects = tuple(effects)
        outputs, is_tuple = self._outputs(effects, array_arguments)
        if self.outputs is not None and (outputs, is_tuple) != (self.outputs, self.is_tuple):
            raise TypeError(
                f"{self.name} returns {_words(self.outputs)} on one path and {_words(outputs)} on "
                "another: an operator of torch always returns the same"
            )
        self.outputs, self.is_tuple = outputs, is_tuple

    def _outputs(
        self, effects: tuple[Any, ...], array_arguments: int
    ) -> tuple[tuple[str | None, ...], bool]:
        value = effects[-1].value
        sources = {one.array: one.source for one in effects if isinstance(one, View)}
        kind = value[0]
        if kind == oc.V_NONE:
            return (), False
        is_tuple = kind in (oc.V_TUPLE, oc.V_LIST) or (
            kind == oc.V_MADE and hasattr(value[1].value, "_fields")
        )
        items = (value[2] if kind == oc.V_MADE else value[1]) if is_tuple else (value,)
        memory: list[int] = []
        found = tuple(self._output(one, sources, array_arguments, memory) for one in items)
        if is_tuple and len(found) < 2:
            raise TypeError(
                f"{self.name} returns a tuple or list of {len(found)}: an operator of torch "
                "returns one thing itself; return it without the tuple"
            )
        return found, is_tuple

    def _output(
        self, value: tuple[Any, ...], sources: dict[int, int], arrays: int, memory: list[int]
    ) -> str | None:
        kind = value[0]
        if kind == oc.V_NONE:
            return None
        if kind in (oc.V_ARGUMENT, oc.V_ELEMENT):
            raise self._aliases(f"its argument {self.names[value[1]]}")
        if kind == oc.V_CONSTANT and type(value[1].value) in (bool, int, float):
            return {bool: "bool", int: "SymInt", float: "float"}[type(value[1].value)]
        if kind not in _TYPES:
            raise TypeError(
                f"{self.name} returns a tuple in a tuple, a dict or something else: an operator "
                "of torch returns arrays, numbers, and one tuple of these"
            )
        if kind == oc.V_ARRAY:
            root = value[1]
            while root in sources:
                root = sources[root]
            if root < arrays:
                raise self._aliases("a view of an argument")
            if root in memory:
                raise self._aliases("two arrays in the same memory")
            memory.append(root)
        return _TYPES[kind]

    def _aliases(self, what: str) -> TypeError:
        return TypeError(
            f"{self.name} returns {what}: torch forbids operators whose outputs share memory with "
            "their inputs or each other. Return None where an argument is written in place (the "
            "caller has it), or a new array"
        )


@untraced
def find(function: AnyFunction, parameters: tuple[Parameter, ...]) -> Findings:
    """Trace a body for kinds of arguments that it takes, on every path, and say what it does.

    Raises
    ------
    TypeError
        If there is no such kind, or the body returns what no operator can.
    """
    findings = Findings(function.__name__, function.declaration.names)
    if isinstance(function, RecordedFunction):
        for uses, effects, array_arguments in function.paths():
            findings.add(uses, effects, array_arguments)
        return findings
    for kind, tree in list(function._trees.values()):
        findings.add(tree.uses, None, 0)
        for node in tree.nodes():
            if node.leaf is not None and not _is_error(node.leaf):
                findings.add({}, node.leaf.effects, arrays_of(kind))
    is_found = findings.outputs is not None
    error: Exception | None = None
    absent = [i for i, one in enumerate(parameters) if one.is_optional]
    for count in range(min(len(absent), 4) + 1):
        for left_out in itertools.combinations(absent, count):
            problem = _learn(function, parameters, left_out, findings)
            is_found = is_found or problem is None
            error = error or problem
    if not is_found:
        raise TypeError(
            f"{function.__name__}: what it returns is not known, because its body takes no kind of "
            f"arguments that was tried ({type(error).__name__}: {error}): annotate its arrays, "
            'x: cl.Array("float32", "b n"), call it once before, or pass schema='
        ) from error
    return findings


def _learn(
    function: Function[..., Any], parameters: tuple[Parameter, ...], absent: tuple[int, ...],
    findings: Findings,
) -> Exception | None:  # fmt: skip
    """Learn from the first kind that the body takes; without one, return what it said."""
    error: Exception | None = None
    for kind in _kinds(parameters, absent):
        runs = _runs(function, kind)
        if isinstance(runs, Exception):
            error = error or runs
            continue
        for run in runs:
            findings.add(run.uses, None if run.is_error else run.record.effects, arrays_of(kind))
        if not all(run.is_error for run in runs):
            return None
        error = error or ValueError("every path of it ends in an error")
    return error


def _runs(function: Function[..., Any], kind: Kind) -> list[Run] | Exception:
    """Run a body on all paths, or where there are too many on the likely one."""
    try:
        return list(explore(function.declaration, kind, set(), both_sides=True))
    except Exception as problem:  # noqa: BLE001 - the body's, on arguments that nobody passed
        try:
            return list(explore(function.declaration, kind, set(), both_sides=False))
        except Exception:  # noqa: BLE001 - likewise
            return problem


def _kinds(parameters: tuple[Parameter, ...], absent: tuple[int, ...]) -> Iterator[Any]:
    for rank, dtype in itertools.islice(itertools.product(_RANKS, _DTYPES), 24):
        for flag in (False, True):
            yield tuple(
                None if i in absent else _entry(one, parameters, rank, dtype, flag)
                for i, one in enumerate(parameters)
            )
            if not any(one.type == "bool" for one in parameters):
                break


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


def _is_error(leaf: Leaf) -> bool:
    """Tell a path that ends in an error, or does nothing at all: it says nothing of results."""
    return len(leaf.effects) == 1 and leaf.effects[0] == Return((oc.V_NONE,))


def _words(outputs: tuple[str | None, ...]) -> str:
    return "(" + ", ".join("None" if one is None else one for one in outputs) + ")"
