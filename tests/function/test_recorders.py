"""Objects that launch in a way of their own, in the bodies of functions."""

import numpy as np
import pytest
from bodies import both

import culaunch as cl
from culaunch._function.body.bodies import current
from culaunch._function.tracing.recorders import record
from culaunch._launch.launches.recording import RECORDERS

pytestmark = pytest.mark.usefixtures("emulated")


class Doubler:
    """Something that launches in a way of its own: ``doubler(x)`` doubles."""

    def __call__(self, x, out=None):
        out[...] = 2 * x
        return out


def test_what_registers_a_recorder_stands_in_a_body(kernels, monkeypatch):
    """It is asked where the extension would: here the body asks for it."""

    double = Doubler()
    kinds = []

    def recorder(body, target, how, args, keywords):
        assert (target, how) == (double, "call")
        kinds.append([body.mode, *map(body.what, (*args, 1, 2.0, True, "a"))])
        (x,) = args
        y = body.empty(x.shape, x.dtype.name)
        body.check(x.is_contiguous(), "doubling takes a contiguous array", ValueError)
        body.call(double, (x,), (y,))
        body.launch(kernels["scale<float>"], (y, y, 1.0, x.size), grid=1, block=64)
        return y

    monkeypatch.setitem(RECORDERS, Doubler, recorder)

    @cl.function
    def quadruple(x):
        for _ in range(2):
            x = record(double, "call", (x,), {})
        return x

    x = np.arange(5, dtype=np.float32)
    assert both(quadruple, x).tolist() == (4 * x).tolist()
    assert kinds[0] == ["trace", "array", "int", "float", "bool", None]
    assert kinds[-1][0] == "live"
    assert "Doubler(x, out=(a1))" in quadruple.explain(x)
    assert current() is None
