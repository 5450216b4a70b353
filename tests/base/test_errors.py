"""The errors: what they hold by default, and after a way through an executor."""

import pickle

import pytest

import culaunch as cl

HELD = [
    (cl.DriverError, {"code": 700, "name": "CUDA_ERROR_ILLEGAL_ADDRESS"}, {"code": 0, "name": ""}),
    (cl.LaunchError, {"code": 1, "name": "CUDA_ERROR_INVALID_VALUE"}, {"code": 0, "name": ""}),
    (cl.DriverNotFoundError, {"code": 100, "name": "NONE"}, {"code": 0, "name": ""}),
    (cl.ImageError, {"source": "k.cubin", "offset": 18}, {"source": None, "offset": None}),
    (cl.CompileError, {"log": "k.cu(1): error"}, {"log": ""}),
    (cl.KernelNotFoundError, {"log": ""}, {"log": ""}),
]


@pytest.mark.parametrize(("kind", "given", "default"), HELD)
def test_an_error_has_its_facts_also_in_another_process(kind, given, default):
    for facts in (given, default):
        error = kind("what failed", **({} if facts is default else facts))
        for one in (error, pickle.loads(pickle.dumps(error))):
            assert type(one) is kind
            assert "what failed" in str(one)
            assert {name: getattr(one, name) for name in facts} == facts
            assert getattr(one, "report", None) is None


def test_an_error_of_an_image_says_where_it_is():
    assert str(cl.ImageError("is cut", source="a.cubin", offset=255)) == (
        "a.cubin: is cut (at offset 0xff)"
    )
    assert str(cl.ImageError("is cut", offset=0)) == "is cut (at offset 0x0)"
    assert str(cl.ImageError("is cut")) == "is cut"
