"""NumPy's universal functions, in C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from culaunch._emulator.compiled.c_types import c_type

if TYPE_CHECKING:
    from collections.abc import Sequence


class Untraceable(Exception):  # noqa: N818
    """Something that the compiled engine cannot say in C."""


# Functions of NumPy that round as only NumPy does: compiled code calls NumPy's own loops.
LOOPS = (np.exp2, np.log2, np.sin, np.cos, np.tanh)


def loop_types(
    ufunc: np.ufunc, samples: Sequence[Any], dtype: Any
) -> tuple[list[np.dtype[Any]], list[np.dtype[Any]]]:
    """Return the types in which NumPy computes: of the operands and of the results."""
    # Python's numbers take the type of the other operand, NumPy's keep their own.
    given = [type(s) if type(s) in (int, float) else np.asarray(s).dtype for s in samples]
    options: dict[str, Any] = {}
    if dtype is not None:
        options["signature"] = (*[None] * ufunc.nin, np.dtype(dtype))
    types = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), **options)
    return list(types[: ufunc.nin]), list(types[ufunc.nin :])


def _same(text: str) -> Any:
    """Return a template whose result has the type of the operands."""
    return lambda kind, *x: (f"({c_type(kind)})({text.format(*x)})",)


def _arithmetic(sign: str) -> Any:
    def template(kind: np.dtype[Any], a: str, b: str) -> tuple[str, ...]:
        if kind.kind == "f":
            return (f"{_wide(kind, a)} {sign} {_wide(kind, b)}",)
        # Unsigned words wrap around, as their lower parts do.
        return (f"({c_type(kind)})((u64){a} {sign} (u64){b})",)

    return template


def _wide(kind: np.dtype[Any], name: str) -> str:
    if kind == np.float16:
        raise Untraceable("arithmetic of halves")
    return name


def _compare(sign: str) -> Any:
    def template(kind: np.dtype[Any], a: str, b: str) -> tuple[str, ...]:
        if kind == np.float16:
            a, b = f"half_to_single({a})", f"half_to_single({b})"
        return (f"{a} {sign} {b}",)

    return template


def _extremum(sign: str) -> Any:
    def template(kind: np.dtype[Any], a: str, b: str) -> tuple[str, ...]:
        if kind.kind == "f":
            # NumPy returns the first NaN.
            return (f"({_wide(kind, a)} {sign} {b} || {a} != {a}) ? {a} : {b}",)
        return (f"{a} {sign} {b} ? {a} : {b}",)

    return template


def _shift(sign: str) -> Any:
    def template(kind: np.dtype[Any], a: str, b: str) -> tuple[str, ...]:
        width, word = 8 * kind.itemsize, f"u{8 * kind.itemsize}"
        # NumPy shifts by the width or more to zero, or to the sign.
        beyond = f"({a} < 0 ? -1 : 0)" if sign == ">>" and kind.kind == "i" else "0"
        value = f"({word}){a}" if sign == "<<" else a
        return (f"(({word}){b} < {width} ? ({c_type(kind)})({value} {sign} {b}) : {beyond})",)

    return template


def _divide(kind: np.dtype[Any], a: str, b: str) -> tuple[str, ...]:
    if kind.kind == "f":
        raise Untraceable("a floor of a quotient")
    if kind.kind == "i":
        # C cuts towards zero, NumPy rounds down.
        return (f"{b} ? {a} / {b} - ({a} % {b} && ({a} < 0) != ({b} < 0)) : 0",)
    return (f"{b} ? {a} / {b} : 0",)


def _invert(kind: np.dtype[Any], a: str) -> tuple[str, ...]:
    return (f"!{a}" if kind.kind == "b" else f"({c_type(kind)})~{a}",)


def _negate(kind: np.dtype[Any], a: str) -> tuple[str, ...]:
    return (f"-{_wide(kind, a)}" if kind.kind == "f" else f"({c_type(kind)})(0 - (u64){a})",)


def _absolute(kind: np.dtype[Any], a: str) -> tuple[str, ...]:
    if kind.kind == "f":
        return (f"__builtin_fabs{_suffix(kind)}({_wide(kind, a)})",)
    return (f"({c_type(kind)})({a} < 0 ? 0 - (u64){a} : (u64){a})" if kind.kind == "i" else a,)


def _of_float(name: str) -> Any:
    def template(kind: np.dtype[Any], *x: str) -> tuple[str, ...]:
        names = ", ".join(_wide(kind, a) for a in x)
        return (f"__builtin_{name}{_suffix(kind)}({names})",)

    return template


def _asks(text: str) -> Any:
    def template(kind: np.dtype[Any], a: str) -> tuple[str, ...]:
        if kind == np.float16:
            a = f"half_to_single({a})"
        return (text.format(a),)

    return template


def _loop(index: int) -> Any:
    def template(kind: np.dtype[Any], a: str) -> tuple[str, ...]:
        if kind != np.float64:
            raise Untraceable("a function of single precision")
        return (f"numpy_loop(c, {index}, {a})",)

    return template


def _suffix(kind: np.dtype[Any]) -> str:
    return "f" if kind.itemsize == 4 else ""


# From the type of the operands and their names, an expression for each result.
TEMPLATES: dict[np.ufunc, Any] = {
    np.add: _arithmetic("+"),
    np.subtract: _arithmetic("-"),
    np.multiply: _arithmetic("*"),
    np.true_divide: lambda kind, a, b: (f"{_wide(kind, a)} / {b}",),
    np.floor_divide: _divide,
    np.reciprocal: lambda kind, a: (f"1 / {_wide(kind, a)}",),
    np.negative: _negate,
    np.absolute: _absolute,
    np.bitwise_and: _same("{0} & {1}"),
    np.bitwise_or: _same("{0} | {1}"),
    np.bitwise_xor: _same("{0} ^ {1}"),
    np.invert: _invert,
    np.logical_and: lambda _, a, b: (f"{a} && {b}",),
    np.logical_or: lambda _, a, b: (f"{a} || {b}",),
    np.logical_xor: lambda _, a, b: (f"!{a} != !{b}",),
    np.left_shift: _shift("<<"),
    np.right_shift: _shift(">>"),
    np.equal: _compare("=="),
    np.not_equal: _compare("!="),
    np.less: _compare("<"),
    np.less_equal: _compare("<="),
    np.greater: _compare(">"),
    np.greater_equal: _compare(">="),
    np.minimum: _extremum("<"),
    np.maximum: _extremum(">"),
    np.isnan: _asks("{0} != {0}"),
    np.isinf: _asks("__builtin_isinf({0}) != 0"),
    np.isfinite: _asks("__builtin_isfinite({0}) != 0"),
    np.signbit: _asks("__builtin_signbit({0}) != 0"),
    np.sqrt: _of_float("sqrt"),
    np.rint: _of_float("rint"),
    np.trunc: _of_float("trunc"),
    np.floor: _of_float("floor"),
    np.ceil: _of_float("ceil"),
    np.fmod: _of_float("fmod"),
    np.frexp: lambda kind, a: (f"fraction_of({_wide(kind, a)})", f"exponent_of({a})"),
    np.ldexp: lambda kind, a, b: (f"__builtin_ldexp{_suffix(kind)}({_wide(kind, a)}, (int){b})",),
    **{ufunc: _loop(index) for index, ufunc in enumerate(LOOPS)},
}
