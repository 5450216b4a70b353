"""Heuristics and grids as expressions: what they say is what their Python says."""

import contextlib
import itertools
import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

pytest.importorskip("triton", reason="needs triton")
pytest.importorskip("torch", reason="needs torch")

from culaunch._triton.expressions import (
    ExpressionError,
    evaluate,
    parse_expressions,
    read_expression,
    traced_grid,
    traced_heuristic,
    write_expression,
)
from culaunch._triton.reads.purity import Unknown
from culaunch._triton.saved.grid import element_type

NAMES = ["x", "n", "M", "N", "BLOCK", "h0", "flag", "ACT"]
MOST = 128


def near(n, most=4):
    return min(n, most * MOST)


def heuristics():
    import torch
    import triton

    return {
        "given": lambda args: args["h0"] is not None,
        "not given": lambda args: args["h0"] is None,
        "even": lambda args: args["n"] % args["BLOCK"] == 0,
        "both": lambda args: args["n"] % args["BLOCK"] == 0 and args["M"] % 16 == 0,
        "either": lambda args: args["n"] > 100 or not args["flag"],
        "rounded": lambda args: triton.next_power_of_2(args["N"]),
        "at least": lambda args: max(16, triton.next_power_of_2(args["N"])),
        "divided": lambda args: triton.cdiv(args["M"], args["BLOCK"]),
        "by a helper": lambda args: near(args["N"]),
        "half": lambda args: args["x"].dtype == torch.float16,
        "steps": lambda args: 16 if args["N"] < 64 else (32 if args["N"] < 128 else 64),
        "chain": lambda args: 1 < args["n"] <= args["M"],
        "ceil": lambda args: math.ceil(args["n"] / args["BLOCK"]),
        "one of": lambda args: args["ACT"] in ("relu", "silu"),
        "bits": lambda args: (args["n"] & 3 | args["M"] << 2) ^ ~args["N"],
        "number or none": lambda args: 0 if args["flag"] is None else args["n"],
        "via a variable": lambda args: _by_variable(args),
        "whole": lambda args: int(args["n"] / 3) - abs(-args["M"]) // 7,
        "divmod": lambda args: sum(divmod(args["n"], 7)),
    }


def _by_variable(args):
    return args


def values(n, m, block, flag, act):
    import torch

    return {
        "x": torch.zeros(1, dtype=torch.float16 if n % 2 else torch.float32), "n": n, "M": m,
        "N": n + m, "BLOCK": block, "h0": None if m % 2 else torch.zeros(1), "flag": flag,
        "ACT": act,
    }  # fmt: skip


@pytest.mark.parametrize("which", heuristics())
def test_an_expression_says_what_the_python_says(which):
    call = heuristics()[which]
    if which == "via a variable":
        with pytest.raises(Unknown):
            traced_heuristic(call, NAMES)
        return
    made = traced_heuristic(call, NAMES)
    assert read_expression(write_expression(made), NAMES) == made
    choices = itertools.product((0, 1, 63, 64, 1000), (2, 5, 48), (16, 64), (None, True, False, 0),
                                ("relu", "none"))  # fmt: skip
    for one in choices:
        given = values(*one)
        said = call(given)
        found = evaluate(made, given, element_type)
        assert (found, type(found)) == (said, type(said)), one


def _closing_over(value):
    return lambda meta: (value,)


def _closing_over_a_class(kind):
    return lambda args: isinstance(args["n"], kind)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda args: args["flag"] is True, "compares the identity of objects"),
        (lambda args: math.log2(args["n"]), "uses n in a way that an expression cannot"),
        (lambda args: isinstance(args["n"], int), "asks for the type of n"),
        (lambda args: len(args["x"].shape), "reads the shape of x as a whole"),
        (lambda args: args["other"], "reads other, which is not a parameter"),
        (lambda args: (args["n"], 1), "makes a tuple"),
        (lambda args: 2 ** args["n"], "uses n in a way that an expression cannot"),
        (lambda args: [1, 2][args["n"]], "BUILD_LIST|LIST_EXTEND"),
        (lambda args: len(args["n"]), "uses n in a way that an expression"),
        (lambda args: args, "more with the arguments"),
        (lambda a, b: a["n"], "must take only the arguments"),
        (print, "not a function"),
        (lambda args: print(args["n"]), "uses print"),
        (_closing_over_a_class(int), "uses kind|asks for the type"),
        (lambda args: any(args["n"] == i for i in (1, 2)), "MAKE_|LOAD_CONST|generator|makes"),
    ],
)
def test_what_no_expression_can_say_is_refused(call, words):
    with pytest.raises(Unknown, match=words):
        traced_heuristic(call, NAMES)


def test_a_grid_that_uses_a_number_of_one_call_is_refused():
    for grid in (_closing_over(3), lambda meta: (min(MOST, meta["n"]),)):
        with pytest.raises(Unknown, match="whose value may differ from call to call"):
            traced_grid(grid, NAMES)
    # The expected text.
    n = 7
    with pytest.raises(Unknown, match=r'of this name, pass grid="\(n // BLOCK\), 2"'):
        traced_grid(lambda meta: (n // meta["BLOCK"], 2), NAMES)
    with pytest.raises(Unknown, match=r"it is \(MOST \* n\), where MOST is not a parameter"):
        traced_grid(lambda meta: (MOST * n,), NAMES)
    with pytest.raises(Unknown, match="returns"):
        traced_grid(lambda meta: (1, 2) if meta["n"] > 1 else (2,), NAMES)
    with pytest.raises(Unknown, match="returns"):
        traced_grid(lambda meta: (1, 2, 3, meta["n"]), NAMES)


def test_what_fails_for_none_says_so():
    made = traced_heuristic(lambda args: args["n"] % 16 == 0, NAMES)
    assert str(made) == "((n % 16) == 0)"
    with pytest.raises(ExpressionError, match="None is not a number"):
        evaluate(made, {"n": None}, None)
    with pytest.raises(ExpressionError, match="n has no value"):
        evaluate(made, {}, None)
    with pytest.raises(ExpressionError, match="n is a Tensor, not a number"):
        evaluate(made, {"n": values(1, 1, 1, 1, "")["x"]}, None)

    made = traced_heuristic(lambda args: 6 // args["n"], NAMES)
    assert evaluate(made, {"n": 3}, None) == 2
    with pytest.raises(ExpressionError, match="by zero"):
        evaluate(made, {"n": 0}, None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cdiv(M, BLOCK) * cdiv(N, BLOCK), 1, 1", ["(cdiv(M, BLOCK) * cdiv(N, BLOCK))", "1", "1"]),
        ("M if h0 is None else N", ["(M if (h0 is None) else N)"]),
        ("min(M, N, 3)", ["min(min(M, N), 3)"]),
        ("1 < M <= N and flag is not None",
         ["((not (flag is None)) if ((M <= N) if (1 < M) else False) else False)"]),
        ("(n + BLOCK - 1) // BLOCK", ["(((n + BLOCK) - 1) // BLOCK)"]),
        ("-(-n // 64)", ["(-((-n) // 64))"]),
        ("2 * 3 + 1", ["7"]),
        ("ACT == 'relu'", ["(ACT == 'relu')"]),
    ],
)  # fmt: skip
def test_text(text, shown):
    assert [str(one) for one in parse_expressions(text, NAMES)] == shown


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x.shape[n]", "is not supported in an expression"),
        ("__import__('os')", "is not supported in an expression"),
        ("(lambda: 1)()", "is not supported in an expression"),
        ("M ** 2", "is not supported in an expression"),
        ("cdiv(M)", "is not supported in an expression"),
        ("cdiv(x=M, y=2)", "is not supported in an expression"),
        ("M is N", "is not supported in an expression"),
        ("Q + 1", "reads Q, which is not a parameter: the parameters are x, n"),
        ("(", "is not an expression"),
        ("", "is not an expression"),
        ("1\0", "is not an expression|null"),
        ("1" * 20_000, "is too long"),
        ("-" * 3000 + "1", "too deeply|recursion"),
        ("(" * 900 + "1" + ")" * 900, "is not an expression|too deeply"),
        ("+".join(["M"] * 3000), "too deeply|too long|operations"),
    ],
)
def test_text_that_is_no_expression(text, words):
    with pytest.raises(ValueError, match=words):
        parse_expressions(text, NAMES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["value", "if", "+", "//", "<<", "cdiv", "n", "M", "constant", "error"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=12,
)  # fmt: skip


@hypothesis.given(JSON)
@hypothesis.settings(max_examples=200)
def test_any_json_is_an_expression_or_refused(entry):
    try:
        made = read_expression(entry, NAMES)
    except (TypeError, ValueError):
        return
    assert read_expression(write_expression(made), NAMES) == made
    assert isinstance(str(made), str)
    with contextlib.suppress(ExpressionError):
        evaluate(made, {"n": 2**40, "M": 3.5}, None)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (["value", "other"], "reads 'other'"),
        (["value", "a b"], "not the name of a parameter"),
        (["+", 1], "not an operation"),
        (["evil", 1], "not an operation"),
        (["if", 1, 2], "not an operation"),
        ([], "unpack"),
        ([3, 1], "is not a str"),
        ({"a": 1}, "is not a list"),
        (["constant", {"code": 1}], "is not a constant"),
        (["error", "x" * 2000], "not an operation"),
    ],
)
def test_what_is_no_expression_in_a_file(entry, words):
    with pytest.raises((TypeError, ValueError), match=words):
        read_expression(entry, NAMES)


def test_large_expressions_in_a_file_are_refused():
    deep = 1
    for _ in range(100):
        deep = ["neg", deep]
    with pytest.raises(ValueError, match="too deeply"):
        read_expression(deep, NAMES)
    wide = ["value", "n"]
    for _ in range(12):
        wide = ["+", wide, wide]
    with pytest.raises(ValueError, match="more than 1000 operations"):
        read_expression(wide, NAMES)
    for entry in (["<<", 1, 2**62], ["*", 2**62, 2**62], ["//", 1, 0], ["<<", 1, -1],
                  ["next_power_of_2", 2**62 + 1], ["int", 1e300]):  # fmt: skip
        with pytest.raises(ExpressionError):
            evaluate(read_expression(entry, NAMES), {}, None)


def test_python_functions_among_the_builtins_change_nothing(monkeypatch):
    import builtins

    # IPython adds functions like this one.
    monkeypatch.setattr(builtins, "display", lambda *things: None, raising=False)
    expression = traced_heuristic(lambda args: max(args["n"], 4), NAMES)
    assert evaluate(expression, {"n": 9}, element_type) == 9


def test_shapes_in_a_file_are_read_with_nothing_trusted():
    for entry in (["size", "x"], ["size", "x", True], ["size", "x", 64], ["stride", "x", "0"],
                  ["rank", "x", 0], ["size", "y", 0], ["count"]):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            read_expression(entry, {"x"})
    size = read_expression(["size", "x", -2], {"x"})
    assert str(size) == "x.shape[-2]"
    for value, text in ((3, "is a int"), (None, "is a NoneType")):
        with pytest.raises(ExpressionError, match=text):
            evaluate(size, {"x": value}, None)
    with pytest.raises(ExpressionError, match="no dimension -2"):
        evaluate(size, {"x": np.ones(3)}, None)
    stride = read_expression(["stride", "x", 0], {"x"})
    assert evaluate(stride, {"x": np.ones((2, 3), "f4")}, None) == 3
