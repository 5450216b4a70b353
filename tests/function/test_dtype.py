"""Element types in a body, and the numbers of programs."""

import numpy as np
import pytest

import culaunch as cl
from culaunch import _core
from culaunch._function import opcodes
from culaunch._function.dtype import BY_NAME, DTYPES

pytestmark = pytest.mark.usefixtures("emulated")


def test_the_numbers_are_the_extensions():
    known = _core.program_format()
    assert {dtype.name: dtype.number for dtype in DTYPES} == known["dtypes"]
    assert [dtype.number for dtype in DTYPES] == list(range(len(DTYPES)))
    ops = {op.name: (op.number, op.operands) for op in opcodes.OPS.values()}
    ends = {"GUARD": opcodes.GUARD, "EFFECTS": opcodes.EFFECTS}
    assert {name: row for name, row in known["opcodes"].items() if name not in ends} == ops
    assert {name: known["opcodes"][name][0] for name in ends} == ends
    assert known["math"] == opcodes.MATH_NUMBER
    raised = {kind.__name__: number for number, kind in enumerate(opcodes.EXCEPTIONS)}
    assert raised == known["exceptions"]


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_dtype_is_its_name_and_the_types_of_frameworks(name):
    dtype = BY_NAME[name]
    assert dtype == name
    assert dtype != "float31"
    assert repr(dtype) == name
    assert hash(dtype) == hash(name)
    if hasattr(np, name) and name != "bool":
        assert dtype == np.dtype(name)
        assert dtype == getattr(np, name)
        assert dtype.itemsize == np.dtype(name).itemsize
    torch = pytest.importorskip("torch", reason="needs torch")
    if hasattr(torch, name):
        assert dtype == getattr(torch, name)
        assert dtype.itemsize == getattr(torch, name).itemsize


def test_it_is_spelled_as_in_cpp():
    @cl.function
    def spelled(x):
        return f"{x.dtype}", x.dtype.name, x.dtype.itemsize, x.dtype.kind, x.dtype == "int64"

    assert spelled(np.zeros(1, np.int64)) == ("long long", "int64", 8, "i", True)
    assert spelled(np.zeros(1, np.float16)) == ("__half", "float16", 2, "f", False)
    assert spelled(np.zeros(1, np.uint8)) == ("unsigned char", "uint8", 1, "u", False)
    torch = pytest.importorskip("torch", reason="needs torch")
    assert spelled(torch.zeros(1, dtype=torch.bfloat16))[0] == "__nv_bfloat16"
    assert spelled(torch.zeros(1, dtype=torch.float8_e4m3fn))[0] == "__nv_fp8_e4m3"
