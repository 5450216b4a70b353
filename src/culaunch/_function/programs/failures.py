"""The messages of failures in a program. The extension calls this if a plan cannot continue."""

from __future__ import annotations

from typing import Any, NoReturn

from culaunch._base.places import with_line
from culaunch._base.values import counted
from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.semantics import SEMANTICS


def raise_failure(
    function: str,
    number: int,
    detail: int,
    text: str | None,
    values: tuple[Any, ...],
    *,
    has_source: bool = True,
) -> NoReturn:
    """Raise for an instruction that failed.

    Parameters
    ----------
    function : str
        Its name.
    number, detail : int
        The instruction's; docs/dev/functions.md says what the detail is.
    text : str or None
        The place in the body, or a check's message.
    values : tuple
        Of the operands.
    has_source : bool, optional
        Whether the place is a file of this machine, whose line is shown.
    """
    name = oc.BY_NUMBER[number].name
    if name == "CHECK":
        raise oc.EXCEPTIONS[detail]((text or "{}").format(*values))
    where = f"{function}: " if text is None else f"at {with_line(text) if has_source else text}: "
    value = values[0]
    if name == "RANGE":
        size, is_signed = detail & 0xFF, detail >> 8
        low = "0" if is_signed == 0 else f"-2^{8 * size - 1}"
        high = f"2^{8 * size - 1} - 1" if is_signed == 1 else f"2^{8 * size} - 1"
        raise OverflowError(
            f"{where}a parameter of {counted(size, 'byte')} must be from {low} to {high} (got "
            f"{value})"
        )
    if name == "FLOAT_RANGE":
        raise OverflowError(
            f"{where}a float of {detail >> 8} bits cannot hold a number this large (got {value})"
        )
    if name == "DIMENSION":
        raise ValueError(
            f"{where}a grid, block or cluster must be from 1 to {detail} in every dimension "
            f"(got {value}): cl.launch_if launches nothing for an empty problem"
        )
    symbol = oc.MATH_FUNCTIONS[detail] if name == "MATH" else oc.BY_NUMBER[number].symbol
    raise _arithmetic(name, symbol, where, values)


def _arithmetic(name: str, symbol: str, where: str, values: tuple[Any, ...]) -> Exception:
    """Return Python's exception for the operation, or an OverflowError past 64 bits."""
    written_out = " and ".join(map(str, values))
    what = f"{where}{symbol} of {written_out}"
    # The native code only reports that it cannot continue. The operands determine the exception.
    if name in SEMANTICS and SEMANTICS[name].error == "division" and values[1] == 0:
        return ZeroDivisionError(f"{what}: division by zero")
    if name in ("SHL", "SHR") and values[1] < 0:
        return ValueError(f"{what}: negative shift count")
    if name == "POW" and values[1] < 0:
        return ValueError(f"{what}: an int to a negative power is not an int")
    if name == "FPOW":
        if values[0] == 0:
            return ZeroDivisionError(f"{what}: zero to a negative power")
        if values[0] < 0 and values[1] != int(values[1]):
            return ValueError(f"{what}: a negative number to a fractional power is complex")
        return OverflowError(f"{what}: the result is too large")
    if name == "MATH":
        return _math_error(symbol, what, values)
    if name in ("FLOOR", "CEIL", "TRUNC", "ROUND") and values[0] != values[0]:
        return ValueError(f"{what}: NaN is not an int")
    return OverflowError(f"{what}: the result does not fit 64 bits")


def _math_error(symbol: str, what: str, values: tuple[Any, ...]) -> Exception:
    try:
        # Repeat it in Python, which has the right message.
        oc.math_call(symbol)(*values)
    except (ValueError, OverflowError) as error:
        return type(error)(f"{what}: {error}")
    return ValueError(f"{what}: math domain error")
