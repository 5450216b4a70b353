"""Junk for the arguments of functions, of what stands in their bodies, and of their libraries."""

import numpy as np
import pytest
from junk import wrong_answers

import culaunch as cl

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n)
{
    ret;
}
"""
ARRAY = np.arange(6, dtype="float32")


def twice(x, factor=2.0):
    y = cl.empty_like(x)
    cl.load(PTX)["k"][cl.ceildiv(x.size, 256), 256](y, x, factor, x.size)
    return y


@pytest.fixture
def scale(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    module = cl.load(PTX)

    @cl.function
    def scale(x, factor: float):
        y = cl.empty_like(x)
        module["k"][cl.ceildiv(x.size, 256), 256](y, x, factor, x.size)
        return y

    return scale


# How each name is called when all is well; every parameter is then replaced by every junk value.
CALLS = {
    "Array": (cl.Array, {"dtype": "float32", "dims": "b n"}),
    "ceildiv": (lambda x, y: cl.ceildiv(x, y), {"x": 7, "y": 2}),
    "check": (cl.check, {"condition": True, "message": "it is"}),
    "empty_like": (cl.empty_like, {"x": ARRAY}),
    "export": (cl.ship.export, {"functions": [], "path": "f.so"}),
    "function": (lambda body, **k: cl.function(body, **k), {"body": twice}),
    "launch_if": (lambda **k: cl.launch_if(**k), {"condition": False, "launcher": abs}),
    "load_library": (cl.ship.load_library, {"source": b"junk"}),
    "next_power_of_2": (lambda x: cl.next_power_of_2(x), {"x": 7}),
    "package": (
        cl.ship.package,
        {
            "library": "f.culib",
            "name": "k",
            "version": "1.0",
            "output": ".",
            "summary": "k",
            "requires": (),
        },
    ),
    "dtype_of": (cl.dtype_of, {"name": "x"}),
    "save": (cl.ship.save, {"functions": [], "path": "f.culib"}),
    "zeros_like": (cl.zeros_like, {"x": ARRAY}),
}
# The methods of a function, and a call of it.
METHODS = {
    "Function": (lambda one, **k: one(**k), {"x": ARRAY, "factor": 2.0}),
    "Function.explain": (lambda one, **k: one.explain(**k), {"x": ARRAY, "factor": 2.0}),
    "Function.specialize": (
        lambda one, **k: one.specialize(**k),
        {"x": cl.Array("float32", "n"), "factor": float},
    ),
    "Function.abstract": (lambda one, **k: one.abstract(**k), {"x": ARRAY, "factor": 2.0}),
    "Function.source": (lambda one, **k: one.source(**k), {"language": "c++"}),
    "Function.backward": (lambda one, **k: one.backward(**k), {"function": print, "forward": None}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_junk_is_refused_by_name(name, monkeypatch, tmp_path, unoptimized):
    for variable, value in unoptimized.items():  # export compiles where a junk value is allowed
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    monkeypatch.chdir(tmp_path)
    function, call = CALLS[name]
    assert wrong_answers(function, call, also=(ZeroDivisionError,)) == []


@pytest.mark.needs("torch")
def test_an_operator_refuses_junk_by_name(scale):
    assert wrong_answers(cl.frameworks.torch_op, {"name": "junk", "function": scale}) == []


@pytest.mark.parametrize("name", METHODS)
def test_a_function_refuses_junk_by_name(name, scale):
    method, call = METHODS[name]
    assert wrong_answers(lambda **k: method(scale, **k), call) == []


@pytest.mark.needs("jax")
def test_junk_of_jax_op(scale):
    assert wrong_answers(cl.frameworks.jax_op, {"function": scale}) == []
