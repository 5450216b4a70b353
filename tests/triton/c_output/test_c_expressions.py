"""Expressions of grids and heuristics in C: what they say is what Python says."""

import ctypes
import itertools
import re
import subprocess

import pytest
from sets import C_WARNINGS

from culaunch._triton.c_output.expressions import BOOL, INT, CExpressions, arithmetic_used
from culaunch._triton.expressions import (
    ExpressionError,
    constant,
    evaluate,
    partly,
    read_expression,
)

pytestmark = pytest.mark.needs("gcc")


def expressions():
    n, m, b = ["value", "n"], ["value", "m"], ["value", "b"]
    binary = ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "cdiv", "min", "max"]
    made = [[op, n, m] for op in binary]
    made += [["if", [op, n, m], 1, 0] for op in ("==", "!=", "<", "<=", ">", ">=")]
    made += [[op, n] for op in ("neg", "invert", "abs", "int", "next_power_of_2")]
    made += [
        ["ceil", ["/", n, m]], ["floor", ["/", n, m]], ["int", ["/", n, m]],
        ["int", ["*", ["float", n], 0.5]], ["if", b, ["not", n], m], ["+", b, ["bool", n]],
        ["if", ["is_none", "x"], ["error", "no x"], ["-", n, 1]],
        ["if", ["==", n, None], 1, ["if", ["==", ["constant", "a"], m], 2, 3]],
        ["int", ["max", ["float", n], 2.5]], ["abs", ["int", ["neg", ["/", n, 3]]]],
        ["if", ["<", n, 2.5], 1, 2], ["+", ["value", "BLOCK"], ["//", n, ["value", "BLOCK"]]],
        ["next_power_of_2", ["cdiv", n, m]], ["int", ["&", b, True]],
    ]  # fmt: skip
    return made


NUMBERS = [0, 1, -1, 2, 7, -8, 63, 64, 2**31 - 1, -(2**31), 2**40 + 3, 2**53 + 1, 2**63 - 1,
           -(2**63)]  # fmt: skip


@pytest.mark.slow
def test_expressions_in_c_are_those_of_python(tmp_path):
    """The same numbers, and no number in the same cases."""
    names = ["x", "n", "m", "b", "BLOCK"]
    trees = [read_expression(tree, names) for tree in expressions()]
    known = {"BLOCK": 64}

    def fixed(op, name):
        return constant(known[name]) if op == "value" and name in known else None

    writer = CExpressions({"n": (INT, "n"), "m": (INT, "m"), "b": (BOOL, "b")}, {"x": "x"})
    bodies = [
        f"  case {i}: result = {writer.number(partly(tree, fixed))}; break;\n"
        for i, tree in enumerate(trees)
    ]
    text = (
        "#include <math.h>\n#include <stdint.h>\n" + arithmetic_used(bodies) + "\n"
        "int64_t run(int which, uint64_t x, int64_t n, int64_t m, int b, int *code);\n"
        "int64_t run(int which, uint64_t x, int64_t n, int64_t m, int b, int *code) {\n"
        "  int culaunch_failed = 0;\n  int64_t result = 0;\n  (void)x;\n  switch (which) {\n"
        + "".join(bodies) + "  }\n  *code = culaunch_failed;\n  return result;\n}\n"
    )  # fmt: skip
    (tmp_path / "e.c").write_text(text)
    subprocess.run(
        ["gcc", "-std=c99", *C_WARNINGS, "-fsanitize=undefined",
         "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC", "-o", tmp_path / "e.so",
         tmp_path / "e.c", "-lm"], check=True,
    )  # fmt: skip
    run = ctypes.CDLL(tmp_path / "e.so").run
    run.restype = ctypes.c_int64
    run.argtypes = [ctypes.c_int, ctypes.c_uint64, *[ctypes.c_int64] * 2, ctypes.c_int,
                    ctypes.POINTER(ctypes.c_int)]  # fmt: skip
    code = ctypes.c_int()
    compared = 0
    for which, tree in enumerate(trees):
        for n, m, b, x in itertools.product(NUMBERS, NUMBERS, (False, True), (0, 16)):
            values = {"n": n, "m": m, "b": b, "x": x or None, **known}
            try:
                said = evaluate(tree, values, None)
            except ExpressionError:
                said = None
            got = run(which, x, n, m, b, code)
            if code.value:
                # C has doubles where Python compares, and divides, exactly.
                is_large = max(abs(n), abs(m)) > 2**53
                assert said is None or (is_large and re.search(r"float|/|\d\.|cdiv", str(tree)))
            else:
                assert said == got, (str(tree), values)
                compared += 1
    assert compared > 10_000
