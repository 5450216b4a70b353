"""Preconditions of operations on numbers, and the exceptions if they do not hold."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.places import here
from culaunch._function.programs import opcodes as oc
from culaunch._function.symbolic.symbols import hint_of, is_symbolic, make, register_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from culaunch._function.programs.record import Record


class Need(NamedTuple):
    """A condition on the operands, plain or symbolic, and the exception if it does not hold."""

    exception: type[Exception]
    words: str
    holds: Callable[..., Any]


def require(
    record: Record, name: str, values: tuple[Any, ...], what: str, function: int = 0
) -> None:
    """Add guards for the conditions of an instruction, or raise.

    If nothing can catch the exception, the instruction itself raises, and nothing is recorded here.

    Parameters
    ----------
    record : Record
    name : str
        The instruction's.
    values : tuple
        Its operands.
    what : str
        The name of the operation in the message.
    function : int, optional
        For MATH: the number of the function.
    """
    for need in _needs(record, name, function):
        is_fine = bool(need.holds(*map(hint_of, values)))
        if not record.branches(fails=not is_fine) or bool(need.holds(*values)):
            continue
        with record.tokens():
            numbers = " and ".join(map(str, values))
        raise record.error(need.exception, f"at {here().text()}: {what} of {numbers}: {need.words}")


def _needs(record: Record, name: str, function: int) -> Iterator[Need]:
    yield from _NEEDS.get(name, ())
    kinds = _RAISED.get(oc.MATH_FUNCTIONS[function], _BOTH) if name == "MATH" else ()
    compute: Callable[..., Any] = operator.pow
    if name == "FPOW":
        kinds = (OverflowError,)
    elif kinds:
        compute = oc.math_call(oc.MATH_FUNCTIONS[function])
    for kind in kinds:

        def holds(*operands: Any, kind: type[Exception] = kind) -> Any:
            if not any(map(is_symbolic, operands)):
                return not does_raise(compute, operands, kind)
            number = oc.EXCEPTIONS.index(kind)
            registers = [register_of(record, one) for one in operands]
            place = (oc.OPS[name].number, number, function, *registers)
            fails = does_raise(compute, map(hint_of, operands), kind)
            second = () if len(operands) == 2 else (-1,)
            raises = record.emit("RAISES", (*place, *second), fails)
            return make(record, record.emit("NOT", (raises,), not fails))

        yield Need(
            kind, "math range error" if kind is OverflowError else "math domain error", holds
        )


def does_raise(compute: Callable[..., Any], values: Iterable[Any], kind: type[Exception]) -> bool:
    """Tell whether a computation raises an exception of a kind."""
    try:
        compute(*values)
    except kind:
        return True
    except (ValueError, ArithmeticError):
        return False
    return False


def _has_power(x: Any, y: Any) -> Any:
    # 0.0 ** -inf is infinity.
    return (x != 0) | (y >= 0) | (y != y) | (y == -math.inf)


_ZERO = (Need(ZeroDivisionError, "division by zero", lambda _, y: y != 0),)
_SHIFT = (Need(ValueError, "negative shift count", lambda _, y: y >= 0),)
_WHOLE = (
    Need(ValueError, "NaN is not an int", lambda x: x == x),
    Need(OverflowError, "an infinity is not an int", lambda x: (x != math.inf) & (x != -math.inf)),
)
_NEEDS: dict[str, tuple[Need, ...]] = {
    **dict.fromkeys(("FLOORDIV", "MOD", "CEILDIV", "TRUEDIV", "FDIV", "FFLOORDIV", "FMOD"), _ZERO),
    **dict.fromkeys(("SHL", "SHR"), _SHIFT),
    **dict.fromkeys(("FLOOR", "CEIL", "TRUNC", "ROUND"), _WHOLE),
    "FPOW": (Need(ZeroDivisionError, "zero to a negative power", _has_power),),
}
_BOTH: tuple[type[Exception], ...] = (ValueError, OverflowError)
# The exceptions of functions of `math` that raise only one kind.
_RAISED: dict[str, tuple[type[Exception], ...]] = {
    **dict.fromkeys(
        ("sqrt", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "acosh",
         "atanh", "fmod", "remainder"),
        (ValueError,),
    ),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh", "ldexp"), (OverflowError,)),
    **dict.fromkeys(
        ("atan", "atan2", "tanh", "asinh", "erf", "erfc", "copysign", "cbrt", "nextafter", "fabs",
         "hypot", "degrees", "radians"),
        (),
    ),
}  # fmt: skip
