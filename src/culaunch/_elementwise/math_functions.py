"""The elementwise functions of the array API standard (2024.12), on traced values."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from culaunch._base.values import spell
from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.examples import EXAMPLES
from culaunch._elementwise.operations import OPERATIONS
from culaunch._elementwise.trace import Value, cast, operate

if TYPE_CHECKING:
    from collections.abc import Callable

    Operand = Value | bool | int | float | complex

_IS_ROUNDED = re.compile(r"\.\d{3,4}\b")

e = math.e
inf = math.inf
nan = math.nan
pi = math.pi


def _unary(name: str) -> Callable[[Operand], Value]:
    def function(x: Operand, /) -> Value:
        return operate(name, x)

    return _described(function, name)


def _binary(name: str) -> Callable[[Operand, Operand], Value]:
    def function(x1: Operand, x2: Operand, /) -> Value:
        return operate(name, x1, x2)

    return _described(function, name)


def _described(function: Callable[..., Value], name: str) -> Callable[..., Value]:
    operation = OPERATIONS[name]
    words = {"b": "bool", "i": "signed", "u": "unsigned", "f": "real", "c": "complex"}
    taken = ", ".join(words[kind] for kind in operation.kinds)
    summary, arrays, result = EXAMPLES[name]
    names = "x" if operation.arity == 1 else "x1, x2"
    rounding = ".round(4)" if _IS_ROUNDED.search(result) else ""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}.

    Parameters
    ----------
    {names} : Value or number
        Elements of these types: {taken}.

    Returns
    -------
    Value
        The result for each element.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> function = ew.fuse(lambda {names}: ew.{name}({names}))
    >>> arrays = [cl.to_device(np.array(numbers)) for numbers in ({arrays},)]
    >>> function(*arrays).numpy(){rounding}.tolist()
    {result}
    """
    return function


# fmt: off
abs = _unary("abs")  # noqa: A001
acos = _unary("acos")
acosh = _unary("acosh")
add = _binary("add")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atan2 = _binary("atan2")
atanh = _unary("atanh")
bitwise_and = _binary("bitwise_and")
bitwise_invert = _unary("bitwise_invert")
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_or = _binary("bitwise_or")
bitwise_right_shift = _binary("bitwise_right_shift")
bitwise_xor = _binary("bitwise_xor")
ceil = _unary("ceil")
conj = _unary("conj")
copysign = _binary("copysign")
cos = _unary("cos")
cosh = _unary("cosh")
divide = _binary("divide")
equal = _binary("equal")
erf = _unary("erf")
erfc = _unary("erfc")
exp = _unary("exp")
expm1 = _unary("expm1")
floor = _unary("floor")
floor_divide = _binary("floor_divide")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
hypot = _binary("hypot")
imag = _unary("imag")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
less = _binary("less")
less_equal = _binary("less_equal")
log = _unary("log")
log10 = _unary("log10")
log1p = _unary("log1p")
log2 = _unary("log2")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_not = _unary("logical_not")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply")
negative = _unary("negative")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal")
positive = _unary("positive")
pow = _binary("pow")  # noqa: A001
real = _unary("real")
reciprocal = _unary("reciprocal")
remainder = _binary("remainder")
round = _unary("round")  # noqa: A001
rsqrt = _unary("rsqrt")
sign = _unary("sign")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
subtract = _binary("subtract")
tan = _unary("tan")
tanh = _unary("tanh")
trunc = _unary("trunc")
# fmt: on


def clip(x: Value, /, min: Operand | None = None, max: Operand | None = None) -> Value:  # noqa: A002
    """Limit each element to the range from ``min`` to ``max``; None means no limit.

    NaN stays NaN. The result has x's type: ``min`` and ``max`` must promote to it.

    Parameters
    ----------
    x : Value
        Signed, unsigned or real elements.
    min, max : Value or number, optional
        The limits.

    Returns
    -------
    Value
        The limited elements, in the type of `x`.

    Raises
    ------
    TypeError
        If `x` has another type, or a limit does not promote to the type of `x`.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> percent = ew.fuse(lambda x: ew.clip(x, 0, 100))
    >>> percent(cl.to_device(np.array([-5, 50, 500]))).numpy().tolist()
    [0, 50, 100]
    """
    result = operate("positive", x)
    if result.dtype.kind not in "iuf":
        raise TypeError(f"clip takes signed, unsigned, real types (got {result.dtype.name})")
    for name, limit in (("maximum", min), ("minimum", max)):
        if limit is None:
            continue
        # A limit of a wider type would widen the result, which the standard requires to refuse.
        limited = operate(name, result, limit)
        if limited.dtype != result.dtype:
            raise TypeError(
                f"clip: x and the limits must promote to the type of x, {result.dtype.name} (got "
                f"{limited.dtype.name})"
            )
        result = limited
    return result


def astype(x: Value, dtype: object, /) -> Value:
    """Convert each element to another type.

    A cast from float to integer rounds toward zero. A float that does not fit becomes the nearest
    integer that does. A cast to half precision rounds.

    Parameters
    ----------
    x : Value
    dtype : DType, str or a framework's type

    Returns
    -------
    Value
        The converted elements.

    Raises
    ------
    TypeError
        If `x` is not a value of a traced function, or `dtype` is unknown.

    Examples
    --------
    >>> from culaunch import elementwise as ew
    >>> whole = ew.fuse(lambda x: ew.astype(x, ew.int32))
    >>> whole(cl.to_device(np.array([1.7, -1.7, 1e20]))).numpy().tolist()
    [1, -1, 2147483647]
    """
    if not isinstance(x, Value):
        raise TypeError(f"astype takes a value of a traced function (got {spell(x)})")
    return cast(x, dt.as_dtype(dtype))
