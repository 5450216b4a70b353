"""Traced values: they stand in for the arrays of a fused function.

A value is a node of the trace's graph with Python's operators. ``apply`` implements their effect on
types. Here operands become nodes, and errors name the user's line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from culaunch._base.places import here
from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.apply import apply, choose, convert
from culaunch._elementwise.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._elementwise.graph import Node, Number, Trace


class Value:
    """A value of a fused function while it is traced.

    Attributes
    ----------
    dtype : DType
        The element type of its array; a Python scalar's is weak.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> @ew.fuse
    ... def half(x):  # x is a Value
    ...     return x / 2 if x.dtype == "float32" else x // 2
    >>> half(cl.to_device(np.array([3, 5]))).numpy().tolist()
    [1, 2]
    """

    # NumPy's operators and functions then return NotImplemented, so 2.0 * x is handled here.
    __array_ufunc__ = None

    def __init__(self, node: Node) -> None:
        # The only public attribute: a value looks like an array with nothing but a known type.
        self.dtype = node.dtype
        self._node = node

    def astype(self, dtype: object) -> Value:
        """Convert to another element type, as :func:`culaunch.elementwise.astype`.

        Parameters
        ----------
        dtype : DType, str or dtype of a framework
            The element type.

        Returns
        -------
        Value
            The converted value.
        """
        return cast(self, dt.as_dtype(dtype))

    def __repr__(self) -> str:
        return f"<culaunch.elementwise value of {self.dtype.name}>"

    __hash__ = object.__hash__

    if not TYPE_CHECKING:  # for type checkers a name that is not there is a mistake

        def __getattr__(self, name: str) -> object:
            if name.startswith("_"):  # protocols ask for these names, and expect an AttributeError
                return object.__getattribute__(self, name)
            hint = "an elementwise function sees one element"
            if name in OPERATIONS:
                hint = f"write ew.{name}(x)"
            raise AttributeError(f"{self!r} has no attribute {name!r}: {hint}")

    # Operations that need the numbers themselves.

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
    """Handle ``x += y``: rebind a local name, and raise an error for an argument."""

    def method(self: Value, other: object) -> Value:
        # Rebinding a local name is what the function means. For an argument, it would look like a
        # write.
        if self._node.op == "input":
            raise TypeError(
                f"at {here().text()}: {sign}= would not change the caller's array: write "
                f"x = x {sign} y, return it, and give out= to write into an array"
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


def node_of(value: Value) -> Node:
    """Return the computation of a value."""
    return value._node  # noqa: SLF001 - the attributes of a value are the user's to see


def operate(name: str, *operands: object) -> Value:
    """Apply an operation of the table to values and Python scalars."""
    return Value(apply(name, nodes_of(name, operands)))


def where(condition: object, x1: object, x2: object) -> Value:
    """Take elements of x1 where the condition is true, and of x2 elsewhere.

    Parameters
    ----------
    condition : Value or bool
        The condition for each element.
    x1, x2 : Value or number
        The elements to choose from. They broadcast with the condition.

    Returns
    -------
    Value
        The chosen elements, in the type that `x1` and `x2` promote to.

    Raises
    ------
    TypeError
        If the condition is not bool.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> relu = ew.fuse(lambda x: ew.where(x > 0, x, 0))
    >>> relu(cl.to_device(np.array([-1.0, 2.0]))).numpy().tolist()
    [0.0, 2.0]
    """
    if not isinstance(condition, (Value, bool)):
        raise not_a_value("where", condition)
    (chosen,) = nodes_of("where", (condition,))
    first, second = nodes_of("where", (x1, x2), chosen.trace)
    return Value(choose(chosen, (first, second)))


def cast(value: Value, dtype: dt.DType) -> Value:
    """Convert a value, as the user asks for it: to half precision it is rounded."""
    return Value(convert(node_of(value), dtype))


def nodes_of(
    name: str, operands: tuple[object, ...], trace: Trace | None = None
) -> tuple[Node, ...]:
    """Return the nodes of operands, which must belong to one trace. Numbers join it."""
    for operand in operands:
        if isinstance(operand, Value):
            if trace is not None and node_of(operand).trace is not trace:
                raise TypeError(
                    f"{name}: a value of an earlier trace is used at {here().text()}: a fused "
                    "function must not keep values outside of it"
                )
            trace = node_of(operand).trace
    if trace is None:
        raise not_a_value(name, operands[0] if operands else None)
    return tuple(
        node_of(operand) if isinstance(operand, Value) else _constant(name, operand, trace)
        for operand in operands
    )


_WEAK = {
    bool: dt.weak_bool, int: dt.weak_int, float: dt.weak_float, complex: dt.weak_complex
}  # fmt: skip


def _constant(name: str, operand: object, trace: Trace) -> Node:
    """Return a number that the function closes over: a NumPy scalar has its own type."""
    weak = _WEAK.get(type(operand))
    if weak is not None:
        return trace.constant(_held(name, operand), weak)  # type: ignore[arg-type]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(operand, numpy.generic):
        dtype = dt.BY_NAME.get(operand.dtype.name)
        if dtype is None:
            raise TypeError(f"ew.{name}: NumPy's {operand.dtype} is not an element type")
        plain = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind]
        return trace.constant(plain(operand), dtype)
    for plain, weak in _WEAK.items():  # a subclass, such as an enum.IntEnum's member
        if isinstance(operand, plain):
            return trace.constant(_held(name, plain(operand)), weak)
    raise not_a_value(name, operand)


def _held(name: str, number: Number) -> Number:
    """Return a number that some element type can hold."""
    try:
        complex(number)
    except OverflowError:
        raise OverflowError(f"ew.{name}: no element type can represent {spell(number)}") from None
    return number


def not_a_value(name: str, operand: object) -> TypeError:
    if hasattr(operand, "__dlpack__") or hasattr(operand, "__array_interface__"):
        return TypeError(
            f"ew.{name} works on the values of a function that is traced, not on arrays: at "
            f"{here().text()} it got {type(operand).__name__}. Put it in a function under "
            "@ew.fuse, and pass every array as an argument"
        )
    return TypeError(
        f"ew.{name} takes values of a traced function and Python numbers (got {spell(operand)})"
    )


def _refuse_branch(value: Value, what: str, remedy: str) -> NoReturn:
    raise TypeError(
        f"at {here().text()}: a value of {node_of(value).trace.name} {what}, but its numbers are "
        f"not known while the function is traced: {remedy}"
    )
