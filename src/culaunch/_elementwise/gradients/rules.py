"""The gradient of each elementwise operation.

A rule takes the gradient of an operation's result, the result and the operands. It returns the
gradients of the operands; None stands for zero, and a Quotient for a division that can wait.
"""

# ruff: noqa: ARG005 - every rule takes all that some need

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from culaunch._elementwise import math_functions as mf
from culaunch._elementwise.trace import where

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Quotient:
    """A gradient whose division waits: sums of such gradients are divided once.

    Attributes
    ----------
    dividend, divisor : Value
    """

    dividend: Any
    divisor: Any

    @property
    def value(self) -> Any:
        """Divide."""
        return self.dividend / self.divisor

    def times(self, other: Any) -> Any:
        """Multiply before dividing, if the function may have done so."""
        return self.dividend * (other / self.divisor)


def _pow(g: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
    # The logarithm of a base that is not positive would make a gradient of 0 a NaN.
    base = where(a > 0, a, 1)
    return g * b * mf.pow(a, b - 1), where(a > 0, g * y * mf.log(base), 0.0)


def _larger(g: Any, a: Any, b: Any, is_first: Any) -> tuple[Any, ...]:
    """Share the gradient among equal operands, as torch does."""
    half = g * 0.5
    first = where(a == b, half, where(is_first, g, 0.0))
    return first, where(a == b, half, where(is_first, 0.0, g))


RULES: dict[str, Rule] = {
    "abs": lambda g, y, x: (g * mf.sign(x),),
    "acos": lambda g, y, x: (-g * mf.rsqrt(1 - x * x),),
    "acosh": lambda g, y, x: (g * mf.rsqrt(x * x - 1),),
    "add": lambda g, y, a, b: (g, g),
    "asin": lambda g, y, x: (g * mf.rsqrt(1 - x * x),),
    "asinh": lambda g, y, x: (g * mf.rsqrt(x * x + 1),),
    "atan": lambda g, y, x: (g / (1 + x * x),),
    "atan2": lambda g, y, a, b: (g * b / (a * a + b * b), -g * a / (a * a + b * b)),
    "atanh": lambda g, y, x: (g / (1 - x * x),),
    "copysign": lambda g, y, a, b: (where(mf.signbit(a) == mf.signbit(b), g, -g), None),
    "cos": lambda g, y, x: (-g * mf.sin(x),),
    "cosh": lambda g, y, x: (g * mf.sinh(x),),
    "divide": lambda g, y, a, b: (Quotient(g, b), Quotient(-(g * y), b)),
    "erf": lambda g, y, x: (g * (2 / math.sqrt(math.pi)) * mf.exp(-x * x),),
    "erfc": lambda g, y, x: (g * (-2 / math.sqrt(math.pi)) * mf.exp(-x * x),),
    "exp": lambda g, y, x: (g * y,),
    "expm1": lambda g, y, x: (g * (y + 1),),
    "hypot": lambda g, y, a, b: (g * a / y, g * b / y),
    "log": lambda g, y, x: (g / x,),
    "log10": lambda g, y, x: (g / (x * math.log(10)),),
    "log1p": lambda g, y, x: (g / (1 + x),),
    "log2": lambda g, y, x: (g / (x * math.log(2)),),
    "logaddexp": lambda g, y, a, b: (g * mf.exp(a - y), g * mf.exp(b - y)),
    "maximum": lambda g, y, a, b: _larger(g, a, b, a > b),
    "minimum": lambda g, y, a, b: _larger(g, a, b, a < b),
    "multiply": lambda g, y, a, b: (g * b, g * a),
    "negative": lambda g, y, x: (-g,),
    "pow": _pow,
    "reciprocal": lambda g, y, x: (-g * y * y,),
    "remainder": lambda g, y, a, b: (g, -g * mf.floor_divide(a, b)),
    "rsqrt": lambda g, y, x: (-0.5 * g * y * y * y,),
    "sin": lambda g, y, x: (g * mf.cos(x),),
    "sinh": lambda g, y, x: (g * mf.cosh(x),),
    "sqrt": lambda g, y, x: (0.5 * g / y,),
    "square": lambda g, y, x: (2 * g * x,),
    "subtract": lambda g, y, a, b: (g, -g),
    "tan": lambda g, y, x: (g * (1 + y * y),),
    "tanh": lambda g, y, x: (g * (1 - y * y),),
}
# Their results are constant or jump, so the gradient is 0 wherever it exists.
FLAT = {
    "ceil", "floor", "floor_divide", "round", "sign", "trunc", "count", "position", "constant",
}  # fmt: skip
