"""Junk for the arguments of elementwise functions, and inside them."""

import functools
import inspect

import numpy as np
import pytest
from junk import wrong_answers

from culaunch import elementwise as ew

FLOATS = np.zeros(4, np.float32)
TRACED = object()  # stands for the value that a function under fuse got
OPERATIONS = [
    name
    for name in ew.__all__
    if inspect.isfunction(getattr(ew, name)) and name not in ("fuse", "kernel")
]


@pytest.fixture(autouse=True)
def emulator(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")


@functools.cache
def fused():
    return ew.fuse(lambda a, b: a + b)


@functools.cache
def template():
    return ew.kernel("T a, float32 b", "T z", "z = a + b")


@functools.cache
def reduction():
    return ew.ReductionKernel("T a, float32 b", "T z", "a * b", "a + b", "z = a", "0")


TEXTS = {"operation": "y = x", "name": "n", "preamble": ""}
BOTH = {"a": FLOATS, "b": FLOATS}
CALLS = {
    "fuse": lambda: (ew.fuse, {"function": abs}),
    "Fused": lambda: (ew.Fused, {"function": abs}),
    "Fused()": lambda: (lambda **given: fused()(**given), BOTH),
    "Fused.lower": lambda: (lambda **given: fused().lower(**given), BOTH),
    "Fused.source": lambda: (lambda **given: fused().source(**given), BOTH),
    "kernel": lambda: (ew.kernel, {"in_params": "T x", "out_params": "T y", **TEXTS}),
    "ReductionKernel": lambda: (
        ew.ReductionKernel,
        {"in_params": "T x", "out_params": "T y", "map_expr": "x", "reduce_expr": "a + b",
         "post_map_expr": "y = a", "identity": "0", "name": "n", "reduce_type": None,
         "preamble": ""},
    ),
    "ReductionKernel()": lambda: (
        lambda a, b, **options: reduction()(a, b, **options),
        {**BOTH, "axis": None, "keepdims": False},
    ),
    "TemplateKernel": lambda: (ew.TemplateKernel, {"inputs": "T x", "outputs": "T y", **TEXTS}),
    "TemplateKernel()": lambda: (lambda **given: template()(**given), BOTH),
    "TemplateKernel.lower": lambda: (lambda **given: template().lower(**given), BOTH),
    "TemplateKernel.source": lambda: (lambda **given: template().source(**given), BOTH),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_by_name(name):
    function, call = CALLS[name]()
    call = {**call, "out": None} if name.endswith("()") else call
    assert wrong_answers(function, call) == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_junk_in_an_operation_is_refused(name):
    """It is only traced: nothing is compiled."""
    operation = getattr(ew, name)
    given = dict.fromkeys(list(inspect.signature(operation).parameters), TRACED)

    def trace(**values):
        def body(x):
            return operation(*(x if value is TRACED else value for value in values.values()))

        return ew.fuse(body).source(FLOATS)

    assert wrong_answers(trace, given) == []
