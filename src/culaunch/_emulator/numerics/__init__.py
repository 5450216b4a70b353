"""PTX arithmetic on arrays of lanes, bit for bit.

Conventions that every function here keeps:

- A register is an array of *unsigned integers as wide as the PTX type*, one element per lane. It
  has uint16 for f16 and bf16, uint32 for f32, tf32, f16x2 and bf16x2, and uint64 for f64 and
  f32x2. Integers of either sign have uint8 to uint64. Results are new arrays of that kind;
  predicates are bool.
- Operands may have any dtype of that width (float32 for f32, int32 for s32): only the bits count.
- Operands have at least one dimension (an immediate: shape ``(1,)``) and broadcast against each
  other. They need not be contiguous. Nothing is written to them.
- Types and modifiers are spelled as in PTX: ``fma("f32", a, b, c, rounding="rz", ftz=True)``.
- No NumPy warning escapes; the caller need not hold ``numpy.errstate``.
- An arithmetic result that is NaN is 0x7fffffff in f32 and 0x7fff in f16 and bf16, as on the
  hardware. In f64 it is one of the NaN operands (`double` says which), quieted, or
  0xfff8000000000000.
- With ``ftz``, subnormal operands and *rounded* subnormal results become zeros of their sign.

Contents (keyword arguments after the ``*``)::

    add, sub, mul (kind, a, b, *, rounding="rn", ftz=False, sat=False)
    fma           (kind, a, b, c, *, rounding="rn", ftz=False, sat=False, relu=False)
    div           (kind, a, b, *, rounding="rn", ftz=False)
    rcp, sqrt     (kind, a, *, rounding="rn", ftz=False)
    cvt           (to, source, a, *, rounding=None, ftz=False, sat=False, relu=False,
                   satfinite=False)
    cvt_pair      (to, a, b, *, rounding="rn", relu=False, satfinite=False)   f16x2 from two f32
    cvt_pack      (to, a, b, c=None)                                          cvt.pack.sat
    compare       (operator, kind, a, b, *, ftz=False) -> bool
    testp         (kind, test, a) -> bool
    minimum, maximum (kind, a, b, *, nan=False, xorsign_abs=False, ftz=False)
    negate, absolute (kind, a, *, ftz=False)
    copysign      (kind, a, b)              `b` with the sign of `a`, as PTX has it

and the approximations, computed better than the hardware does (bounds: `approximate`)::

    ex2, tanh     (kind, a)                 f32, f16, bf16, f16x2, bf16x2; ex2 takes ftz=
    lg2, sin, cos, sqrt_approx (kind, a, *, ftz=False)                        f32
    rcp_approx, rsqrt_approx   (kind, a, *, ftz=False)                        f32, f64
    div_approx, div_full       (a, b, *, ftz=False)                           f32
"""

from culaunch._emulator.numerics.approximate import (
    cos,
    div_approx,
    div_full,
    ex2,
    lg2,
    rcp_approx,
    rsqrt_approx,
    sin,
    sqrt_approx,
    tanh,
)
from culaunch._emulator.numerics.arithmetic import add, div, fma, mul, rcp, sqrt, sub
from culaunch._emulator.numerics.compare import compare, testp
from culaunch._emulator.numerics.convert import cvt
from culaunch._emulator.numerics.pack import cvt_pack, cvt_pair
from culaunch._emulator.numerics.select import absolute, copysign, maximum, minimum, negate

__all__ = [
    "absolute",
    "add",
    "compare",
    "copysign",
    "cos",
    "cvt",
    "cvt_pack",
    "cvt_pair",
    "div",
    "div_approx",
    "div_full",
    "ex2",
    "fma",
    "lg2",
    "maximum",
    "minimum",
    "mul",
    "negate",
    "rcp",
    "rcp_approx",
    "rsqrt_approx",
    "sin",
    "sqrt",
    "sqrt_approx",
    "sub",
    "tanh",
    "testp",
]
