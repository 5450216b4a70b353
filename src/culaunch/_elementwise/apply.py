"""Apply operations to nodes: check types, convert operands, and compute result types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.operations import OPERATIONS

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node, Number


def apply(name: str, operands: tuple[Node, ...]) -> Node:
    """Return the node of an operation of the table; its operands are brought to one type."""
    operation = OPERATIONS[name]
    dtype = _common(name, operands)
    if dtype.kind not in operation.kinds:
        raise _wrong_kind(name, dtype, operation.kinds)
    # A power by the constant 2 is a multiplication: pow() is ten times as slow, and no more exact.
    if name == "pow" and _is_square(operands[0], operands[1], dtype):
        return apply("square", operands[:1])
    if operation.result == "bool" and operation.arity == 2 and dtype.is_half:
        # A number is compared in the array's type: 0.1 equals a stored 0.1.
        operands = tuple(_rounded(node, dtype) if node.dtype.is_weak else node for node in operands)
    args = tuple(convert(node, dtype, name) for node in operands)
    # An operation without effect on a real number needs no instruction.
    if name in ("real", "conj", "positive") and (name == "positive" or dtype.kind != "c"):
        return args[0]
    return operands[0].trace.operation(name, _result(dtype, operation.result), args)


def choose(condition: Node, operands: tuple[Node, Node]) -> Node:
    """Return the node of a selection between two operands, which are brought to one type."""
    if condition.dtype.kind != "b":
        raise TypeError(f"where: condition must be bool (got {condition.dtype.name})")
    dtype = _common("where", operands)
    args = (condition, *(convert(node, dtype, "where") for node in operands))
    return condition.trace.operation("where", dtype, args)


def convert(node: Node, dtype: dt.DType, what: str = "") -> Node:
    """Return a node in another type; ``what`` names the operation whose operand it is.

    Without it the cast is the user's own, and one to half precision rounds.
    """
    # Half precision is computed in float. An operand that already has the type stays as it is, but
    # an explicit conversion must round.
    if node.dtype == dtype and (what or not dtype.is_half):
        return node
    if node.dtype.kind == "c" and dtype.kind not in "cb":
        raise TypeError(
            f"astype: {node.dtype.name} does not convert to {dtype.name}: use ew.real(x) or "
            "ew.abs(x)"
        )
    # A number of Python is converted here, once, where it can still be refused.
    if node.number is not None and node.dtype.is_weak:
        return node.trace.constant(_fitting(node.number, dtype, what or "astype"), dtype)
    return node.trace.operation("cast" if what or not dtype.is_half else "round_to", dtype, (node,))


def _common(name: str, operands: tuple[Node, ...]) -> dt.DType:
    # Arrays first: a scalar takes the type that the arrays have together.
    ordered = sorted((node.dtype for node in operands), key=lambda dtype: dtype.is_weak)
    common = ordered[0]
    for dtype in ordered[1:]:
        common = dt.promote(common, dtype, name)
    return common


def _result(dtype: dt.DType, rule: str) -> dt.DType:
    if rule == "bool":
        return dt.weak_bool if dtype.is_weak else dt.bool_
    return dt.real_of(dtype) if rule == "real" else dtype


def _is_square(base: Node, exponent: Node, dtype: dt.DType) -> bool:
    """Tell whether it is a second power that leaves the type of its base."""
    number = exponent.number
    return (
        base.number is None
        and dtype == base.dtype
        and number == 2
        and not isinstance(number, complex)
    )


def _rounded(node: Node, dtype: dt.DType) -> Node:
    """Round a value that does not come from an array to half precision."""
    if node.number is not None:
        assert not isinstance(node.number, complex)
        return node.trace.constant(dt.rounded(float(node.number), dtype), dtype)
    return node.trace.operation("round_to", dtype, (node,))


def _fitting(number: Number, dtype: dt.DType, what: str) -> Number:
    if dtype.kind in "iu" and isinstance(number, int):
        low, high = dt.integer_range(dtype)
        if not low <= number <= high:
            raise OverflowError(
                f"{what}: {spell(number)} does not fit {dtype.name} ({low} to {high})"
            )
    return number


def _wrong_kind(name: str, dtype: dt.DType, kinds: str) -> TypeError:
    words = {"b": "bool", "i": "signed", "u": "unsigned", "f": "real", "c": "complex"}
    taken = ", ".join(words[kind] for kind in kinds)
    hint = ""
    if dtype.kind in "iu" and "f" in kinds:
        hint = ": convert first, as in ew.astype(x, ew.float32)"
    return TypeError(f"{name} takes {taken} types (got {dtype.name}){hint}")
