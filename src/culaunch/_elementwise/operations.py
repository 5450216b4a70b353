"""The operand and result types of each operation, and its C++ code.

The C++ code is a template for each kind of operand: ``b``, ``i``, ``u``, ``f``, ``c``, and ``h``
for half precision, which defaults to ``f``. In a template ``{0}`` is an operand and ``{T}`` its C++
type. ``{U}`` is an unsigned type of the same width, in which overflow wraps. ``{s}`` is the suffix
of a function of that width, ``{bits}`` the width, and ``{H}`` the name of a half-precision type.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NUMERIC = "iufc"
REAL = "iuf"


@dataclass(frozen=True)
class Operation:
    """An elementwise operation."""

    name: str
    """Its name in the array API standard."""
    code: dict[str, str] = field(hash=False)
    """The C++ template of each kind that it takes."""
    result: str = "same"
    """``"same"`` as the operands' common type, ``"bool"``, or ``"real"`` (of a complex type)."""
    arity: int = 1

    @property
    def kinds(self) -> str:
        """The kinds that it takes."""
        return "".join(kind for kind in "biufc" if kind in self.code)


def _unary(name: str, result: str = "same", **code: str) -> Operation:
    return Operation(name, code, result, 1)


def _binary(name: str, result: str = "same", **code: str) -> Operation:
    return Operation(name, code, result, 2)


def _all(template: str, kinds: str) -> dict[str, str]:
    return dict.fromkeys(kinds, template)


def _function(name: str, *, with_complex: bool = False, half: str | None = None) -> Operation:
    """Make a function that CUDA's math API has for float and double, and libcu++ for complex."""
    code = {"f": f"{name}{{s}}({{0}})"}
    if half is not None:
        code["h"] = half
    if with_complex:
        code["c"] = f"from_std(cuda::std::{name}(to_std({{0}})))"
    return Operation(name, code)


def _wrapping(sign: str) -> dict[str, str]:
    # Signed overflow is undefined in C++ but wraps in every array library, so compute it unsigned.
    integer = f"({{T}})(({{U}}){{0}} {sign} ({{U}}){{1}})"
    return {"i": integer, "u": integer, **_all(f"{{0}} {sign} {{1}}", "fc")}


def _comparison(name: str, sign: str, kinds: str) -> Operation:
    return Operation(name, _all(f"{{0}} {sign} {{1}}", kinds), "bool", 2)


_OPERATIONS = (
    _unary("abs", "real", i="{0} < 0 ? ({T})-({U}){0} : {0}", u="{0}", f="fabs{s}({0})",
           c="hypot{s}({0}.re, {0}.im)"),
    _function("acos", with_complex=True),
    _function("acosh", with_complex=True),
    _binary("add", **_wrapping("+")),
    _function("asin", with_complex=True),
    _function("asinh", with_complex=True),
    _function("atan", with_complex=True),
    _binary("atan2", f="atan2{s}({0}, {1})"),
    _function("atanh", with_complex=True),
    _binary("bitwise_and", b="{0} && {1}", **_all("({T})({0} & {1})", "iu")),
    _unary("bitwise_invert", b="!{0}", **_all("({T})~{0}", "iu")),
    _binary("bitwise_left_shift", **_all("left_shift({0}, {1})", "iu")),
    _binary("bitwise_or", b="{0} || {1}", **_all("({T})({0} | {1})", "iu")),
    _binary("bitwise_right_shift", **_all("right_shift({0}, {1})", "iu")),
    _binary("bitwise_xor", b="{0} != {1}", **_all("({T})({0} ^ {1})", "iu")),
    _unary("ceil", **_all("{0}", "iu"), f="ceil{s}({0})"),
    _unary("conj", **_all("{0}", REAL), c="{T}{{{0}.re, -{0}.im}}"),
    _binary("copysign", f="copysign{s}({0}, {1})"),
    _function("cos", with_complex=True),
    _function("cosh", with_complex=True),
    _binary("divide", **_all("{0} / {1}", "fc"), h="half_divide({0}, {1})"),
    _comparison("equal", "==", "biufc"),
    _function("exp", with_complex=True, half="__expf({0})"),
    _unary("expm1", f="expm1{s}({0})", c="complex_expm1({0})"),
    _unary("floor", **_all("{0}", "iu"), f="floor{s}({0})"),
    _binary("floor_divide", **_all("floor_divide({0}, {1})", REAL)),
    _comparison("greater", ">", "iuf"),
    _comparison("greater_equal", ">=", "iuf"),
    _binary("hypot", f="hypot{s}({0}, {1})"),
    _unary("imag", "real", c="{0}.im"),
    _unary("isfinite", "bool", **_all("true", "iu"), f="isfinite({0})",
           c="isfinite({0}.re) && isfinite({0}.im)"),
    _unary("isinf", "bool", **_all("false", "iu"), f="isinf({0})",
           c="isinf({0}.re) || isinf({0}.im)"),
    _unary("isnan", "bool", **_all("false", "iu"), f="isnan({0})",
           c="isnan({0}.re) || isnan({0}.im)"),
    _comparison("less", "<", "iuf"),
    _comparison("less_equal", "<=", "iuf"),
    _function("log", with_complex=True),
    _unary("log1p", f="log1p{s}({0})", c="complex_log1p({0})"),
    _unary("log2", f="log2{s}({0})",
           c="scaled(from_std(cuda::std::log(to_std({0}))), 1.4426950408889634)"),
    _function("log10", with_complex=True),
    _binary("logaddexp", f="log_add_exp({0}, {1})"),
    _binary("logical_and", b="{0} && {1}"),
    _unary("logical_not", b="!{0}"),
    _binary("logical_or", b="{0} || {1}"),
    _binary("logical_xor", b="{0} != {1}"),
    _binary("maximum", **_all("{0} < {1} ? {1} : {0}", "iu"), f="maximum({0}, {1})"),
    _binary("minimum", **_all("{1} < {0} ? {1} : {0}", "iu"), f="minimum({0}, {1})"),
    _binary("multiply", **_wrapping("*")),
    _unary("negative", i="({T})-({U}){0}", u="({T})-({U}){0}", f="-{0}",
           c="{T}{{-{0}.re, -{0}.im}}"),
    _binary("nextafter", f="nextafter{s}({0}, {1})", h="next_{H}({0}, {1})"),
    _comparison("not_equal", "!=", "biufc"),
    _unary("positive", **_all("{0}", NUMERIC)),
    _binary("pow", **_all("integer_power({0}, {1})", "iu"), f="pow{s}({0}, {1})",
            c="complex_power({0}, {1})"),
    _unary("real", "real", **_all("{0}", REAL), c="{0}.re"),
    _unary("reciprocal", f="1 / {0}", h="half_divide(1, {0})", c="{T}{{1, 0}} / {0}"),
    _binary("remainder", **_all("modulo({0}, {1})", REAL)),
    _unary("round", **_all("{0}", "iu"), f="rint{s}({0})",
           c="{T}{{rint{s}({0}.re), rint{s}({0}.im)}}"),
    _unary("sign", i="({T})(({0} > 0) - ({0} < 0))", u="({T})({0} > 0)",
           f="{0} > 0 ? ({T})1 : {0} < 0 ? ({T})-1 : {0} == 0 ? ({T})0 : {0}",
           c="complex_sign({0})"),
    _unary("signbit", "bool", f="signbit({0}) != 0"),
    _function("sin", with_complex=True),
    _function("sinh", with_complex=True),
    _unary("square", **_all("({T})(({U}){0} * ({U}){0})", "iu"), **_all("{0} * {0}", "fc")),
    _function("sqrt", with_complex=True, half="half_sqrt({0})"),
    _binary("subtract", **_wrapping("-")),
    _function("tan", with_complex=True),
    _function("tanh", with_complex=True, half="half_tanh({0})"),
    _unary("trunc", **_all("{0}", "iu"), f="trunc{s}({0})"),
    # Beyond the standard's list of elementwise functions.
    _function("erf"),
    _function("erfc"),
    _unary("rsqrt", f="inverse_root({0})"),
)  # fmt: skip

OPERATIONS = {operation.name: operation for operation in _OPERATIONS}
