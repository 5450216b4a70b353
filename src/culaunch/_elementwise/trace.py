"""Traced values: what a fused function sees in place of its arrays."""

from __future__ import annotations

import linecache
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    Scalar = bool | int | float | complex

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Value:
    """A value of a fused function while it is traced: an operation on other values.

    Values are compared by what they compute, so that a common subexpression is one value.

    Attributes
    ----------
    dtype : DType
        The element type of its array; a Python scalar's is weak.
    """

    # NumPy's operators and functions then leave it alone: 2.0 * x comes here.
    __array_ufunc__ = None

    def __init__(
        self, trace: Trace, op: str, dtype: dt.DType, args: tuple[Value, ...] = (), data: object = 0
    ) -> None:
        self.dtype = dtype
        self._trace = trace
        self._op = op
        self._args = args
        self._data = data

    def astype(self, dtype: object) -> Value:
        """Convert to another element type; half precision is rounded to here."""
        return cast(self, dt.as_dtype(dtype))

    def __repr__(self) -> str:
        return f"<culaunch.elementwise value of {self.dtype}>"

    __hash__ = object.__hash__

    # What needs the numbers themselves.

    def __bool__(self) -> NoReturn:  # noqa: PLE0304
        _refuse_branch(self, "is used as a condition", "use ew.where(condition, a, b)")

    def __int__(self) -> NoReturn:
        _refuse_branch(self, "is converted to an int", "use ew.astype(x, ew.int64)")

    def __float__(self) -> NoReturn:
        _refuse_branch(self, "is converted to a float", "use ew.astype(x, ew.float64)")

    def __complex__(self) -> NoReturn:
        _refuse_branch(self, "is converted to a complex", "use ew.astype(x, ew.complex128)")

    def __index__(self) -> NoReturn:  # noqa: PLE0305
        _refuse_branch(self, "is used as an index", "an elementwise function cannot")

    def __iter__(self) -> NoReturn:
        _refuse_branch(self, "is iterated over", "an elementwise function sees one element")

    def __len__(self) -> NoReturn:  # noqa: PLE0303
        _refuse_branch(self, "is asked for its length", "an elementwise function has no shapes")

    def __getitem__(self, key: object) -> NoReturn:
        _refuse_branch(self, "is indexed", "index the array before the call")

    # fmt: off
    def __add__(self, other: object) -> Value: return operate("add", self, other)
    def __radd__(self, other: object) -> Value: return operate("add", other, self)
    def __sub__(self, other: object) -> Value: return operate("subtract", self, other)
    def __rsub__(self, other: object) -> Value: return operate("subtract", other, self)
    def __mul__(self, other: object) -> Value: return operate("multiply", self, other)
    def __rmul__(self, other: object) -> Value: return operate("multiply", other, self)
    def __truediv__(self, other: object) -> Value: return operate("divide", self, other)
    def __rtruediv__(self, other: object) -> Value: return operate("divide", other, self)
    def __floordiv__(self, other: object) -> Value: return operate("floor_divide", self, other)
    def __rfloordiv__(self, other: object) -> Value: return operate("floor_divide", other, self)
    def __mod__(self, other: object) -> Value: return operate("remainder", self, other)
    def __rmod__(self, other: object) -> Value: return operate("remainder", other, self)
    def __pow__(self, other: object) -> Value: return operate("pow", self, other)
    def __rpow__(self, other: object) -> Value: return operate("pow", other, self)
    def __and__(self, other: object) -> Value: return operate("bitwise_and", self, other)
    def __rand__(self, other: object) -> Value: return operate("bitwise_and", other, self)
    def __or__(self, other: object) -> Value: return operate("bitwise_or", self, other)
    def __ror__(self, other: object) -> Value: return operate("bitwise_or", other, self)
    def __xor__(self, other: object) -> Value: return operate("bitwise_xor", self, other)
    def __rxor__(self, other: object) -> Value: return operate("bitwise_xor", other, self)
    def __lshift__(self, other: object) -> Value:
        return operate("bitwise_left_shift", self, other)
    def __rlshift__(self, other: object) -> Value:
        return operate("bitwise_left_shift", other, self)
    def __rshift__(self, other: object) -> Value:
        return operate("bitwise_right_shift", self, other)
    def __rrshift__(self, other: object) -> Value:
        return operate("bitwise_right_shift", other, self)
    def __lt__(self, other: object) -> Value: return operate("less", self, other)
    def __le__(self, other: object) -> Value: return operate("less_equal", self, other)
    def __gt__(self, other: object) -> Value: return operate("greater", self, other)
    def __ge__(self, other: object) -> Value: return operate("greater_equal", self, other)
    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return operate("equal", self, other)
    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return operate("not_equal", self, other)
    def __neg__(self) -> Value: return operate("negative", self)
    def __pos__(self) -> Value: return operate("positive", self)
    def __abs__(self) -> Value: return operate("abs", self)
    def __invert__(self) -> Value: return operate("bitwise_invert", self)
    # fmt: on


def _in_place(sign: str, name: str) -> Callable[[Value, object], Value]:
    """Make ``x += y``: what it does to a local name, and an error for an argument."""

    def method(self: Value, other: object) -> Value:
        if self._op == "input":
            raise TypeError(
                f"at {here()}: {sign}= would not change the caller's array: write x = x {sign} y, "
                "return it, and give out= to write into an array"
            )
        return operate(name, self, other)

    return method


for _sign, _method, _name in (
    ("+", "add", "add"),
    ("-", "sub", "subtract"),
    ("*", "mul", "multiply"),
    ("/", "truediv", "divide"),
    ("//", "floordiv", "floor_divide"),
    ("%", "mod", "remainder"),
    ("**", "pow", "pow"),
    ("&", "and", "bitwise_and"),
    ("|", "or", "bitwise_or"),
    ("^", "xor", "bitwise_xor"),
    ("<<", "lshift", "bitwise_left_shift"),
    (">>", "rshift", "bitwise_right_shift"),
):
    setattr(Value, f"__i{_method}__", _in_place(_sign, _name))


class Trace:
    """The values of one traced call, each once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._values: dict[tuple[object, ...], Value] = {}

    def input(self, index: int, dtype: dt.DType) -> Value:
        """Return the value of an argument."""
        return self.value("input", dtype, (), index)

    def constant(self, number: Scalar, dtype: dt.DType) -> Value:
        """Return a number of an element type, or of a weak one."""
        # 0.0 and -0.0 are equal but not the same.
        return self.value("constant", dtype, (), (type(number), repr(number), number))

    def value(
        self, op: str, dtype: dt.DType, args: tuple[Value, ...] = (), data: object = 0
    ) -> Value:
        """Return the value of an operation: the one there is, or a new one."""
        same = data[:2] if op == "constant" and isinstance(data, tuple) else data
        key = (op, dtype, tuple(map(id, args)), same)
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = Value(self, op, dtype, args, data)
        return found


def operate(name: str, *operands: object) -> Value:
    """Apply an operation of the table to values and Python scalars."""
    operation = OPERATIONS[name]
    values = _as_values(name, operands)
    dtype = _common(name, values)
    if dtype.kind not in operation.kinds:
        raise _wrong_kind(name, dtype, operation.kinds)
    if name == "pow":
        short = _short_power(*operands)
        if short is not None:
            return short
    if operation.result == "bool" and operation.arity == 2 and dtype.is_half:
        # A number is compared as the array's type has it: 0.1 is equal to 0.1 that was stored.
        values = tuple(_rounded(value, dtype) if value.dtype.is_weak else value for value in values)
    args = tuple(cast(value, dtype, name) for value in values)
    if name in ("real", "conj", "positive") and (name == "positive" or dtype.kind != "c"):
        return args[0]
    return _trace_of(values).value(name, _result(dtype, operation.result), args)


def where(condition: object, x1: object, x2: object) -> Value:
    """Take elements of x1 where the condition is true, and of x2 elsewhere."""
    chosen = _as_values("where", (condition,)) if isinstance(condition, (Value, bool)) else ()
    if not chosen:
        raise _not_a_value("where", condition)
    if chosen[0].dtype.kind != "b":
        raise TypeError(f"where: condition must be bool (got {chosen[0].dtype})")
    values = _as_values("where", (x1, x2), chosen[0]._trace)  # noqa: SLF001
    dtype = _common("where", values)
    args = (chosen[0], *(cast(value, dtype, "where") for value in values))
    return _trace_of(values).value("where", dtype, args)


def cast(value: Value, dtype: dt.DType, what: str = "") -> Value:
    """Convert a value; ``what`` names the operation whose operands are brought to one type.

    Without it the cast is the user's own, and one to half precision rounds.
    """
    if value.dtype == dtype and (what or not dtype.is_half):
        return value
    trace = _trace_of((value,))
    if value.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(
            f"astype: {value.dtype} does not convert to {dtype}: use ew.real(x) or ew.abs(x)"
        )
    if value._op == "constant" and value.dtype.is_weak:  # noqa: SLF001
        number = value._data[2]  # type: ignore[index]  # noqa: SLF001
        return trace.constant(_fitting(number, dtype, what or "astype"), dtype)
    if not what and dtype.is_half:
        return trace.value("round_to", dtype, (value,))
    return trace.value("cast", dtype, (value,))


def here() -> str:
    """Return the place in the user's code that runs now: file:line and the line's text."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE + os.sep):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line).strip()
    return f"{file}:{line}" + (f": `{text}`" if text else "")


def _as_values(
    name: str, operands: tuple[object, ...], trace: Trace | None = None
) -> tuple[Value, ...]:
    for operand in operands:
        if isinstance(operand, Value):
            if trace is not None and operand._trace is not trace:  # noqa: SLF001
                raise TypeError(
                    f"{name}: a value of an earlier trace is used at {here()}: a fused function "
                    "must not keep values outside of it"
                )
            trace = operand._trace  # noqa: SLF001
    if trace is None:
        raise _not_a_value(name, operands[0] if operands else None)
    return tuple(
        operand if isinstance(operand, Value) else _constant(name, operand, trace)
        for operand in operands
    )


_WEAK = {
    bool: dt.weak_bool, int: dt.weak_int, float: dt.weak_float, complex: dt.weak_complex
}  # fmt: skip


def _constant(name: str, operand: object, trace: Trace) -> Value:
    """Return a number that the function closes over: a NumPy scalar has its own type."""
    weak = _WEAK.get(type(operand))
    if weak is not None:
        return trace.constant(_held(name, operand), weak)  # type: ignore[arg-type]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(operand, numpy.generic):
        dtype = dt.BY_NAME.get(operand.dtype.name)
        if dtype is None:
            raise TypeError(f"ew.{name}: no element type is NumPy's {operand.dtype}")
        plain = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind]
        return trace.constant(plain(operand), dtype)
    for plain, weak in _WEAK.items():  # a subclass, such as an enum.IntEnum's member
        if isinstance(operand, plain):
            return trace.constant(_held(name, plain(operand)), weak)
    raise _not_a_value(name, operand)


def _held(name: str, number: Scalar) -> Scalar:
    """Return a number that some element type can hold."""
    try:
        complex(number)
    except OverflowError:
        raise OverflowError(f"ew.{name}: no element type has {spell(number)}") from None
    return number


def _common(name: str, values: tuple[Value, ...]) -> dt.DType:
    # Arrays first: a scalar takes the type that the arrays have together.
    ordered = sorted((value.dtype for value in values), key=lambda dtype: dtype.is_weak)
    common = ordered[0]
    for dtype in ordered[1:]:
        common = dt.promote(common, dtype, name)
    return common


def _result(dtype: dt.DType, rule: str) -> dt.DType:
    if rule == "bool":
        return dt.weak_bool if dtype.is_weak else dt.bool_
    return dt.real_of(dtype) if rule == "real" else dtype


def _trace_of(values: tuple[Value, ...]) -> Trace:
    return values[0]._trace  # noqa: SLF001


def _short_power(base: object, exponent: object) -> Value | None:
    if isinstance(base, Value) and isinstance(exponent, (int, float)) and exponent == 2:
        if isinstance(exponent, float) and base.dtype.kind in "iu":
            return None
        return operate("square", base)
    return None


def _rounded(value: Value, dtype: dt.DType) -> Value:
    """Round a value that is no array's to half precision."""
    trace = _trace_of((value,))
    if value._op == "constant":  # noqa: SLF001
        number = value._data[2]  # type: ignore[index]  # noqa: SLF001
        return trace.constant(dt.rounded(float(number), dtype), dtype)
    return trace.value("round_to", dtype, (value,))


def _fitting(number: Scalar, dtype: dt.DType, what: str) -> Scalar:
    if dtype.kind in "iu" and isinstance(number, int):
        low, high = dt.integer_range(dtype)
        if not low <= number <= high:
            raise OverflowError(f"{what}: {spell(number)} does not fit {dtype} ({low} to {high})")
    return number


def _wrong_kind(name: str, dtype: dt.DType, kinds: str) -> TypeError:
    words = {"b": "bool", "i": "signed", "u": "unsigned", "f": "real", "c": "complex"}
    taken = ", ".join(words[kind] for kind in kinds)
    hint = ""
    if dtype.kind in "iu" and "f" in kinds:
        hint = ": convert first, as in ew.astype(x, ew.float32)"
    return TypeError(f"{name} takes {taken} types (got {dtype}){hint}")


def _not_a_value(name: str, operand: object) -> TypeError:
    if hasattr(operand, "__dlpack__") or hasattr(operand, "__array_interface__"):
        return TypeError(
            f"ew.{name} works on the values of a function that is traced, not on arrays: at "
            f"{here()} it got {type(operand).__name__}. Put it in a function under @ew.fuse, "
            "and pass every array as an argument"
        )
    return TypeError(
        f"ew.{name} takes values of a traced function and Python numbers (got {spell(operand)})"
    )


def _refuse_branch(value: Value, what: str, remedy: str) -> NoReturn:
    raise TypeError(
        f"at {here()}: a value of {value._trace.name} {what}, but the numbers are not "  # noqa: SLF001
        f"known while it is traced: {remedy}"
    )
