"""A heuristic, or a grid, as expressions: its Python code runs on stand-ins, once for each case."""

from __future__ import annotations

import contextlib
import dis
import types
from typing import TYPE_CHECKING, Any

from culaunch._triton.expressions.saved import check_size
from culaunch._triton.expressions.substitution import Substitution
from culaunch._triton.expressions.symbols import Answers, Arguments, Failure, Fork, expression_of
from culaunch._triton.expressions.tree import SHAPES, Expression, make
from culaunch._triton.reads.of_code import reads_of
from culaunch._triton.reads.purity import Unknown

if TYPE_CHECKING:
    from collections.abc import Collection

_MOST_WAYS = 200


def traced_heuristic(function: Any, names: Collection[str]) -> Expression:
    """Return the result of a heuristic.

    Parameters
    ----------
    function : callable
        Of a dict of arguments.
    names : collection of str
        The kernel's parameters.

    Raises
    ------
    Unknown
        The reason why an expression cannot represent it.
    """
    return _traced(function, names, (1,), is_tuple=False)[0]


def traced_grid(function: Any, names: Collection[str]) -> tuple[Expression, ...]:
    """Return the one to three numbers of a grid function.

    Raises
    ------
    Unknown
        Why no expression can say it.
    """
    used = _numbers_of(function)
    sizes = _traced(function, names, (1, 2, 3), is_tuple=True, symbols=used)
    if used:
        raise Unknown(_of_one_call(used, sizes, names))
    return sizes


def _traced(
    function: Any,
    names: Collection[str],
    counts: tuple[int, ...],
    *,
    is_tuple: bool,
    symbols: Collection[str] = (),
) -> tuple[Expression, ...]:
    # Only for functions known to be pure, because they run many times. Most calls create a new grid
    # function, with that call's defaults.
    reads = reads_of(function, stays=not is_tuple)
    _refuse_identity(function)
    missing = sorted(reads.names - set(names))
    if missing:
        raise Unknown(f"it reads {', '.join(missing)}, which is not a parameter")
    tracer = _Tracer(function, symbols, is_tuple=is_tuple)
    made = _tidy(tracer.explore(()))
    if len(tracer.lengths) != 1 or not tracer.lengths <= set(counts):
        raise Unknown(f"it returns {sorted(tracer.lengths)} numbers")
    return tuple(check_size(_column(made, i)) for i in range(*tracer.lengths))


class _Tracer:
    """Runs a function along every path through it.

    Parameters
    ----------
    function : function
    symbols : collection of str
        Variables of its surroundings that stand for arguments of these names.
    is_tuple : bool
        Whether it may return a tuple of numbers.
    """

    def __init__(
        self, function: types.FunctionType, symbols: Collection[str], *, is_tuple: bool
    ) -> None:
        self._function = function
        self._symbols = symbols
        self._is_tuple = is_tuple
        self._runs = 0
        self.lengths: set[int] = set()

    def explore(self, given: tuple[bool, ...]) -> Expression:
        """Return its result after these answers, as an expression whose results are tuples."""
        self._runs += 1
        if self._runs > _MOST_WAYS:
            raise Unknown("it distinguishes too many cases")
        answers = Answers(given)
        # A copy whose globals work with stand-ins: the builtin `min` and `isinstance` would ask a
        # stand-in for numbers.
        copy = Substitution(answers).function(self._function, self._symbols)
        try:
            found = copy(Arguments(answers))
        except Fork as fork:
            # Start over each time with one more answer, because Python cannot return to the
            # question.
            yes, no = (self.explore((*given, answer)) for answer in (True, False))
            return Expression("if", (fork.question, yes, no))
        except Failure as failure:
            return failure.error
        except Unknown:
            raise
        except Exception as error:  # noqa: BLE001  (an exception here also occurs in the real call)
            return Expression("error", (f"{type(error).__name__}: {error}"[:500],))
        # A grid function may return one number, or a tuple of numbers.
        items = found if self._is_tuple and isinstance(found, (tuple, list)) else (found,)
        result = tuple(map(expression_of, items))
        self.lengths.add(len(result))
        failing = [one for one in result if one.op == "error"]
        return failing[0] if failing else Expression("tuple", result)


def _column(made: Expression, index: int) -> Expression:
    """Return one number of the results."""
    if made.op == "tuple":
        return made.operands[index]  # type: ignore[no-any-return]
    if made.op == "error":
        return made
    question, yes, no = made.operands
    return make("if", question, _column(yes, index), _column(no, index))


def _tidy(made: Expression) -> Expression:
    """Drop the question for None if None fails anyway, because the value is used as a number."""
    if made.op != "if":
        return made
    question, yes, no = made.operands[0], _tidy(made.operands[1]), _tidy(made.operands[2])
    # Both errors mean the same to the caller.
    if yes.op == no.op == "error":
        return no
    if question.op == "is_none" and yes.op == "error" and _uses(no, question.operands[0]):
        return no
    return Expression("if", (question, yes, no))


def _uses(expression: Expression, name: str) -> bool:
    """Whether every path through an expression uses an argument's value."""
    operands = expression.operands
    if expression.op == "if":
        return _uses(operands[0], name) or (_uses(operands[1], name) and _uses(operands[2], name))
    if expression.op in ("dtype", *SHAPES):
        return bool(operands[0] == name)
    if expression.op == "error":
        return True
    if expression.op in ("value", "is_none", "is_array", "constant"):
        return False
    is_number = expression.op not in ("tuple", "==", "!=", "not", "bool")
    return any(
        (is_number and one.op == "value" and one.operands[0] == name) or _uses(one, name)
        for one in operands
    )


def _refuse_identity(function: types.FunctionType, depth: int = 0) -> None:
    """Refuse ``is``, except ``is None``: a symbol is not identical to its value."""
    before: dis.Instruction | None = None
    for one in dis.get_instructions(function.__code__):
        if one.opname in ("CACHE", "EXTENDED_ARG", "NOP"):
            continue
        is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
        # From CPython 3.11 on, a jump on "is None" is one instruction, not an IS_OP. Any other test
        # loads None just before it.
        if one.opname == "IS_OP" and not is_none:
            raise Unknown("it compares the identity of objects")
        before = one
    if depth > 5:
        return
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    used = [function.__globals__.get(name) for name in function.__code__.co_names]
    for found in (*held, *used):
        if isinstance(found, types.FunctionType) and found.__module__ != "triton":
            _refuse_identity(found, depth + 1)


def _numbers_of(grid: Any) -> list[str]:
    """Return the enclosing variables that are numbers and that a grid uses.

    Most of them belong to one call.
    """
    code = getattr(grid, "__code__", None)
    if code is None:
        return []
    found = {name: grid.__globals__.get(name) for name in code.co_names}
    for name, cell in zip(code.co_freevars, grid.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not bound yet
            found[name] = cell.cell_contents
    return [name for name, value in found.items() if isinstance(value, (int, float))]


def _of_one_call(
    used: Collection[str], sizes: Collection[Expression], names: Collection[str]
) -> str:
    """Explain that a grid uses numbers of its surroundings, and show its text."""
    text = ", ".join(map(str, sizes))
    others = sorted(set(used) - set(names))
    reason = f"it uses the variable {', '.join(used)}, whose value may differ from call to call"
    if others:
        return (
            f"{reason}; it is {text}, where {', '.join(others)} is not a parameter of the kernel: "
            "write it in terms of the parameters, or give the grid in each call"
        )
    return f'{reason}; if that is the parameter of this name, pass grid="{text}"'
