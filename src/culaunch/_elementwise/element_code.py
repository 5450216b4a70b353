"""The C++ code that a kernel runs for one element: made from a trace or from the string form."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.apply import convert
from culaunch._elementwise.operations import OPERATIONS

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node, Number

# A kernel's name lists at most this many operations: enough to recognize it, and still readable.
_NAMED = 6
_HALVES = {"float16": "half", "bfloat16": "bfloat16"}


@dataclass(frozen=True)
class Array:
    """An array operand: its C++ name, its element type, its argument's number (-1: an output)."""

    name: str
    dtype: dt.DType
    argument: int = -1
    is_raw: bool = False


@dataclass(frozen=True)
class Scalar:
    """A scalar parameter: an argument converted to a type before the launch."""

    name: str
    dtype: dt.DType
    argument: int


@dataclass(frozen=True)
class ElementCode:
    """The computation of one element."""

    title: str
    """A name for the computation, as a C identifier."""
    outputs: tuple[Array, ...]
    inputs: tuple[Array, ...]
    scalars: tuple[Scalar, ...]
    body: tuple[str, ...]
    """Statements that give every output's variable its value."""
    preamble: str = ""
    """C++ at namespace level that the body needs."""
    uses_index: bool = False
    """Whether the body uses ``i``, the index of the element in C order."""


def make_element_code(results: tuple[Node, ...]) -> ElementCode:
    """Order the values that the results need, name them, and write them in C++.

    Names depend only on the order: functions that differ only in names give the same code.
    """
    return _Writer(results).code


class _Writer:
    def __init__(self, results: tuple[Node, ...]) -> None:
        self._names: dict[Node, str] = {}
        self._body: list[str] = []
        self._operations: list[str] = []
        self._inputs: list[Array] = []
        self._scalars: list[Scalar] = []
        outputs = []
        for number, result in enumerate(results):
            final = of_array_type(result)
            outputs.append(Array(f"y{number}", final.dtype))
            self._body.append(f"y{number} = {self._name(final)};")
        # Without duplicates, in the order of the code.
        operations = list(dict.fromkeys(self._operations)) or ["copy"]
        self.code = ElementCode(
            title_of(operations),
            tuple(outputs),
            tuple(sorted(self._inputs, key=lambda array: array.argument)),
            tuple(self._scalars),
            tuple(self._body),
        )

    def _name(self, node: Node) -> str:
        # Iterative, because a chain may be longer than Python's stack.
        pending = [node]
        while pending:
            top = pending[-1]
            missing = [arg for arg in top.args if arg not in self._names]
            if top in self._names:
                pending.pop()
            # The cast of a scalar argument has an operand that is never written.
            elif missing and not self._is_host_cast(top):
                pending.extend(reversed(missing))
            else:
                self._names[top] = self._write(top)
                pending.pop()
        return self._names[node]

    def _is_host_cast(self, node: Node) -> bool:
        """Whether it converts a scalar argument, which happens once before the launch."""
        if node.op != "cast" or node.dtype.is_weak:
            return False
        (source,) = node.args
        return source.op == "input" and source.dtype.is_weak

    def _write(self, node: Node) -> str:
        op, dtype = node.op, node.dtype
        if op == "constant":
            assert node.number is not None
            return literal(node.number, dtype)
        if op == "input":
            return self._input(node)
        if self._is_host_cast(node):
            index = node.args[0].index
            return self._scalar(index, dtype)
        # Name every value, even if it is used once: the compiler decides what to keep in registers.
        code = expression(node, [self._names[arg] for arg in node.args])
        if op not in ("cast", "round_to"):
            self._operations.append(op)
        name = f"v{len(self._body)}"
        self._body.append(f"const {dt.compute(dtype)} {name} = {code};")
        return name

    def _input(self, node: Node) -> str:
        index = node.index
        # A negative index marks a NumPy scalar, which has an element type, but is a kernel
        # parameter instead of an array.
        if node.dtype.is_weak or index < 0:
            return self._scalar(abs(index + 1) if index < 0 else index, node.dtype)
        name = f"x{index}"
        self._inputs.append(Array(name, node.dtype, index))
        return name

    def _scalar(self, argument: int, dtype: dt.DType) -> str:
        name = f"s{argument}" + ("" if dtype.is_weak else f"_{dtype.name}")
        self._scalars.append(Scalar(name, dtype, argument))
        return name


def expression(node: Node, args: list[str]) -> str:
    """Write an operation on operands that have names."""
    dtype = node.dtype
    if node.op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    source = node.args[0].dtype
    if node.op == "cast":
        return conversion(args[0], source, dtype)
    if node.op == "round_to":
        kind = _HALVES[dtype.name]
        real = f"to_odd({args[0]})" if dt.compute(source) == "double" else f"(float){args[0]}"
        return f"load_{kind}(store_{kind}({real}))"
    code = OPERATIONS[node.op].code
    # Half precision has its own form if a cheaper one is exact enough for its few bits.
    template = code.get("h", code.get("f")) if source.is_half else code.get(source.kind)
    assert template is not None
    return template.format(
        *args,
        T=dt.compute(source),
        U=dt.unsigned_of(source) if source.kind in "iu" else "",
        s="f" if dt.compute(dt.real_of(source)) == "float" else "",
        H=_HALVES.get(source.name, source.name),
    )


def title_of(operations: list[str]) -> str:
    """Return a name for a kernel's computation."""
    return "_".join(operations[:_NAMED]) + ("_and_more" if len(operations) > _NAMED else "")


def conversion(code: str, source: dt.DType, target: dt.DType) -> str:
    """Write a conversion between the types that two element types are computed in."""
    if dt.compute(source) == dt.compute(target):
        return code
    if target.kind == "b":
        return f"{code}.re != 0 || {code}.im != 0" if source.kind == "c" else f"{code} != 0"
    if target.kind == "c":
        part = dt.compute(dt.real_of(target))
        if source.kind == "c":
            return f"{dt.compute(target)}{{({part}){code}.re, ({part}){code}.im}}"
        return f"{dt.compute(target)}{{({part}){code}, 0}}"
    if source.kind == "f" and target.kind in "iu" and target.bits < 32:
        # The GPU converts to 32 bits and keeps the low ones, so clamp in between.
        low, high = dt.integer_range(target)
        if target.kind == "u":
            return f"({dt.compute(target)})min((unsigned int){code}, {high}u)"
        return f"({dt.compute(target)})max(min((int){code}, {high}), {low})"
    return f"({dt.compute(target)}){code}"


def literal(number: Number, dtype: dt.DType) -> str:
    """Write a number as a constant of the type that an element type is computed in."""
    if dtype.kind == "c":
        whole = complex(number)
        part = dt.real_of(dtype)
        return f"{dt.compute(dtype)}{{{literal(whole.real, part)}, {literal(whole.imag, part)}}}"
    if isinstance(number, complex):
        raise TypeError(f"the complex number {number} does not convert to {dtype.name}")
    if dtype.kind == "f":
        return _real_literal(float(number), dt.compute(dtype) == "float")
    if dtype.kind == "b":
        return "true" if number else "false"
    if not math.isfinite(number):
        raise OverflowError(f"{number} does not convert to {dtype.name}")
    whole_number = int(number)
    low, high = dt.integer_range(dtype)
    if not low <= whole_number <= high:
        raise OverflowError(f"{whole_number} does not fit {dtype.name} ({low} to {high})")
    # C++ has no negative literals: 9223372036854775808 does not fit before its sign is applied.
    if whole_number == -(1 << 63):
        return "(-9223372036854775807ll - 1)"
    suffix = {"unsigned long long": "ull", "long long": "ll", "unsigned int": "u"}
    text = f"{whole_number}{suffix.get(dt.compute(dtype), '')}"
    cast_to = "" if dtype.bits >= 32 else f"({dt.compute(dtype)})"
    return f"{cast_to}({text})" if whole_number < 0 else f"{cast_to}{text}"


def _real_literal(number: float, is_single: bool) -> str:
    if is_single:
        try:
            number_as_stored = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number_as_stored = math.copysign(math.inf, number)
    else:
        number_as_stored = number
    if math.isnan(number_as_stored):
        # A kernel's source has no NAN and no INFINITY without an include.
        return "__int_as_float(0x7fc00000)"
    if math.isinf(number_as_stored):
        sign = "-" if number_as_stored < 0 else ""
        return f"({sign}__int_as_float(0x7f800000))"
    # NVRTC 13.0 rounds a number halfway between two others up, not to even, so write the rounded
    # number.
    text = repr(number_as_stored if _is_halfway(number, number_as_stored) else number)
    if not re.search(r"[.e]", text):
        text += ".0"
    text += "f" if is_single else ""
    return f"({text})" if number < 0 or text.startswith("-") else text


def _is_halfway(number: float, stored: float) -> bool:
    """Tell whether a number is halfway between two float32 values."""
    other = 2 * number - stored
    try:
        return other != stored and struct.unpack("f", struct.pack("f", other))[0] == other
    except OverflowError:
        return False


def of_array_type(result: Node) -> Node:
    """Give a result an element type if it is a plain Python scalar."""
    if not result.dtype.is_weak:
        return result
    default = {"b": dt.bool_, "i": dt.int64, "f": dt.float64, "c": dt.complex128}
    return convert(result, default[result.dtype.kind], "return")
