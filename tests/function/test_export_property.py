"""Random bodies: exported, they compute, decide and raise as the function called directly does."""

from __future__ import annotations

import random

import pytest
from test_property import (
    COMPARE,
    FLOAT_BINARY,
    FLOAT_UNARY,
    INT_BINARY,
    INT_UNARY,
    LIMIT,
    evaluate,
    outcome,
)

import culaunch as cl

tvm_ffi = pytest.importorskip("tvm_ffi")
pytestmark = [
    pytest.mark.needs("g++", "nvrtc"),
    pytest.mark.slow,
    pytest.mark.usefixtures("emulated"),
]

INTS = [0, 1, 2, 3, 5, -1, -4, 64, 1000, 2**31, LIMIT - 1]
FLOATS = [0.0, 0.5, -1.5, 3.0, 1e10, 1e300]
NAMES = ["n", "m", "rows", "columns", "z", "w"]
NUMBERS = [0, 1, 2, 3, 7, 100, -1, -5, 2**31, 2**62, -(2**63)]
REALS = [0.0, -0.0, 1.0, 0.1, -2.5, 7.0, 1e18, 1e19, 1e308, float("inf"), float("nan")]
# Python computes it by itself: it is not exported.
UNARY = sorted({*INT_UNARY, *FLOAT_UNARY})
BINARY = sorted({*INT_BINARY, *FLOAT_BINARY} - {"hypot"})


def tree(choose, depth):
    kind = choose.choice(
        ["leaf", "unary", "binary", "binary", "if", "select"] if depth else ["leaf"]
    )
    inner = [lambda: tree(choose, depth - 1)] * 4
    if kind == "unary":
        return kind, choose.choice(UNARY), inner[0]()
    if kind == "binary":
        return kind, choose.choice(BINARY), inner[0](), inner[1]()
    if kind in ("if", "select"):
        sides = [one() for one in (inner if kind == "if" else inner[:3])]
        return kind, choose.choice(COMPARE), *sides
    return choose.choice(
        [
            ("int", choose.choice(INTS)),
            ("float", choose.choice(FLOATS)),
            ("name", choose.choice(NAMES)),
            ("name", choose.choice(NAMES)),
        ]
    )


def function_of(root, name):
    def body(x, n: int, m: int, z: float, w: float):
        names = {"n": n, "m": m, "z": z, "w": w, "rows": x.shape[0], "columns": x.shape[1]}
        return evaluate(root, names)

    body.__name__ = name
    return cl.function(body)


def test_arithmetic_and_branches(tmp_path):
    choose = random.Random(20)
    functions = {f"f{i}": function_of(tree(choose, 4), f"f{i}") for i in range(60)}
    calls = [
        (
            choose.choice(NUMBERS), choose.choice(NUMBERS), choose.choice(REALS),
            choose.choice(REALS), choose.randrange(6), choose.randrange(6),
        )
        for _ in range(30)
    ]  # fmt: skip
    # Once to find the paths, and once more when all are known: what overflows and is not used is an
    # error of a path that is found.
    for _ in range(2):
        expected = {name: [outcome(f, call) for call in calls] for name, f in functions.items()}
    exported = {name: f for name, f in functions.items() if f._programs()}
    assert len(exported) > 40
    path = tmp_path / "libarithmetic.so"
    cl.ship.export(list(exported.values()), path, flags=["-O0"])
    library = tvm_ffi.load_module(str(path))
    for kind in (OverflowError, ZeroDivisionError, NotImplementedError):
        tvm_ffi.register_error(kind.__name__, kind)
    compared = 0
    for name in exported:
        for call, wanted in zip(calls, expected[name], strict=True):
            try:
                found = outcome(getattr(library, name), call)
            except NotImplementedError:
                assert isinstance(wanted, type)  # this call raised, and left no path
            else:
                assert found == wanted, (name, call, functions[name].source())
                compared += 1
    assert compared > 1000
