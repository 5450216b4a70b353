"""Random Python, written as text: a program gives what Python gives, or the same error."""

from __future__ import annotations

import linecache
import math
import random

import numpy as np
import pytest

import culaunch as cl

pytestmark = pytest.mark.usefixtures("emulated")

LIMIT = 1 << 63
# I, F and B are an int, a float and a bool; N an int or a float, C a comparison, D a digit.
INTS = """n m 0 1 3 -2 x.shape[0] x.shape[1] x.size x.ndim x.nbytes x.strides[0] len(x.shape)
(I + I);(I - I);(I * I);(I // I);(I % I);(I & I);(I | I);(I ^ I);-I;~I;(I << (I % 9));(I >> (I % 9))
divmod(I, I)[D];min(I, I, I);max([I, I]);sum([I, I], I);abs(I);pow(I, 2);(I ** 3)
int(F);round(F);math.floor(F);math.ceil(F);math.trunc(F);cl.ceildiv(I, I);cl.next_power_of_2(I)
(I if B else I);int(B);(B + I);sum(B for _ in range(2));(I or I);(I and I);(N).bit_length()
sum(range(I % 4));(B).bit_length();(B).numerator;round(B);math.floor(B);len(range(0, I % 5, 2))"""
FLOATS = """z w 0.5 -1.25 3.0 1e18
(N + F);(F - N);(N * F);(N / N);(F // N);(N % F);divmod(F, N)[D];min(F, F);max(F, F);abs(F);-F
float(I);float(B);math.sqrt(abs(N));math.exp(min(N, 5.0));math.log(N);math.hypot(N, N);math.fabs(N)
math.atan2(N, N);math.copysign(N, N);math.fmod(N, N);(abs(N) ** 0.5);pow(abs(F), 2);math.tanh(N)
math.pow(abs(N), 0.25);(F if B else F);(F or N);math.degrees(F);sum([F, N])"""
BOOLS = """flag;n > 2;m == 3;z < w;x.is_contiguous();x.shape[0] == n
(N C N);(I C I C N);(not B);(B and B);(B or B);(B ^ B);bool(N);any([B, B]);all((B, B))
math.isfinite(N);math.isnan(F);(I in (0, 2, n));isinstance(N, int)"""


def choices(text, separator=None):
    first, rest = text.split("\n", 1)
    return first.split(separator), [one for line in rest.splitlines() for one in line.split(";")]


KINDS = {"I": choices(INTS), "F": choices(FLOATS), "B": choices(BOOLS, ";")}


def expression(rng, kind, depth):
    """Write an expression of a kind."""
    if kind == "N":
        kind = rng.choice("IF")
    simple, nested = KINDS[kind]
    if depth <= 0:
        return rng.choice(simple)
    made = ""
    for char in rng.choice(nested):
        if char in "IFBN":
            made += expression(rng, char, depth - 1)
        elif char == "C":
            made += rng.choice(["<", "<=", ">", ">=", "==", "!="])
        else:
            made += rng.choice("01") if char == "D" else char
    return made


def body_of(rng, name):
    """Make a function of three expressions."""
    value, other = (expression(rng, rng.choice("IFB"), rng.randrange(1, 4)) for _ in range(2))
    text = f"""def body(x, n: int, m: int, z: float, w: float, flag):
    t = {value}
    if {expression(rng, "B", 1)}:
        return t, {other}
    return t
"""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"math": math, "cl": cl}
    exec(compile(text, name, "exec"), scope)
    return scope["body"], text


@cl.function
def strides_of(array):
    return tuple(array.strides)


class PlainArray:
    """The attributes of an array in a body, as Python's numbers."""

    def __init__(self, array):
        self.shape, self.ndim, self.size, self.nbytes = (
            array.shape, array.ndim, array.size, array.nbytes,
        )  # fmt: skip
        strides = tuple(one // array.itemsize for one in array.strides)
        # NumPy before 2.3 does not say in DLPack what it has for an axis of one element or none.
        self.strides = strides if min(array.shape) > 1 else strides_of(array)
        self.is_contiguous = lambda: array.flags.c_contiguous


def arguments(rng):
    array = np.zeros((rng.choice([0, 1, 2, 5]), rng.choice([1, 3, 4])), np.float32)
    return (
        array.T if rng.random() < 0.3 else array,
        rng.choice([0, 1, 2, 3, -1, 5, 1000, -7, 2**31, LIMIT - 1, -LIMIT]),
        rng.choice([0, 1, 3, -3, 64]),
        rng.choice([0.0, -0.0, 0.5, -2.5, 1e300, float("inf"), float("nan"), 3.0]),
        rng.choice([1.0, 0.25, -1.5, 1e-300]),
        rng.choice([True, False]),
    )


def outcome(call, *args):
    try:
        return call(*args)
    except (ArithmeticError, ValueError, TypeError, AttributeError) as error:
        return error


def is_same(found, expected):
    # Python's numbers have no end: if a program says that they need more than 64 bits, they may.
    if isinstance(found, OverflowError):
        return True
    if isinstance(found, tuple) and isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    if isinstance(found, Exception) or type(found) is not type(expected):
        return type(found) is type(expected)
    return found == expected or (found != found and expected != expected)


def check(seed, count):
    rng = random.Random(seed)
    compared = 0
    for number in range(count):
        body, text = body_of(rng, f"<body {seed}.{number}>")
        function = cl.function(body)
        for _ in range(4):
            args = arguments(rng)
            expected = outcome(body, PlainArray(args[0]), *args[1:])
            for _ in range(2):  # traced, and as the program that was made
                found = outcome(function, *args)
                assert is_same(found, expected), f"{text}{args}: {found!r}, not {expected!r}"
            compared += not isinstance(found, Exception)
        linecache.cache.pop(f"<body {seed}.{number}>")
    assert compared > count


def test_random_python():
    check(1, 60)


@pytest.mark.slow
def test_much_random_python():
    check(2, 500)
