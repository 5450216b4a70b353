"""Element types in a body, and the numbers of programs."""

import copy
import pickle

import numpy as np
import pytest
from bodies import shape_only

import culaunch as cl
from culaunch import _core
from culaunch import elementwise as ew

pytestmark = pytest.mark.usefixtures("emulated")
NUMBERS = _core.program_format()["dtypes"]
BY_NAME = {name: shape_only((1,), name).dtype for name in NUMBERS}


def test_there_is_one_table_with_the_extensions_numbers():
    assert {dtype.name: dtype.number for dtype in BY_NAME.values()} == NUMBERS
    assert sorted(NUMBERS.values()) == list(range(len(NUMBERS)))
    assert ew.bfloat16 is BY_NAME["bfloat16"]


@pytest.mark.parametrize("dtype", BY_NAME.values(), ids=repr)
def test_a_copy_is_the_same_type(dtype):
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


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
