"""Arrays that must not be written can be read, and a write to one is a fault that names it."""

from __future__ import annotations

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing

# "Untyped" parameters, as those of Triton's kernels are: nothing says what a kernel writes.
PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from) {
.reg .b64 %a, %b; .reg .b32 %v, %i;
ld.param.u64 %a, [to]; ld.param.u64 %b, [from]; mov.u32 %i, %tid.x;
mad.wide.u32 %a, %i, 4, %a; mad.wide.u32 %b, %i, 4, %b;
ld.global.u32 %v, [%b];
st.global.u32 [%a], %v; ret;
}
.visible .entry add(.param .u64 to) {
.reg .b64 %a; .reg .b32 %v; ld.param.u64 %a, [to];
atom.global.add.u32 %v, [%a], 1; ret;
}
"""


@pytest.fixture(autouse=True)
def emulator():
    with testing.use_driver("emulator"):
        yield


@pytest.fixture
def module():
    return cl.load(PTX)


def read_only_arrays(tmp_path):
    frozen = np.arange(8, dtype=np.uint32)
    frozen.flags.writeable = False
    yield frozen
    yield np.frombuffer(bytes(range(32)), np.uint32)
    np.arange(8, dtype=np.uint32).tofile(tmp_path / "weights")
    yield np.memmap(tmp_path / "weights", np.uint32, "r")
    yield Interface(np.arange(8, dtype=np.uint32))
    yield np.broadcast_to(np.uint32(3), 8)


class Interface:
    """An array that is read-only only in the array interface, as in NumPy before 2.1."""

    def __init__(self, array):
        array.flags.writeable = False
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


@pytest.mark.parametrize("which", range(5))
def test_a_read_only_array_is_read_and_not_written(module, tmp_path, which):
    array = list(read_only_arrays(tmp_path))[which]
    before, out = np.array(array), np.zeros(8, np.uint32)
    count = 8 if before.strides == np.asarray(array).strides else 1
    module["copy"][1, count](out, array)
    assert out[:count].tolist() == before[:count].tolist()
    with pytest.raises(cl.DriverError) as caught:
        module["copy"][1, count](array, out)
    text = str(caught.value)
    assert caught.value.code == 700
    assert "4-byte write of global address" in text
    assert "in argument 0, which is a read-only array of" in text
    assert "thread (0, 0, 0)" in text
    assert "PTX line 10: st.global.u32 [%a], %v; ret;" in text
    assert np.array_equal(np.asarray(array), before)


def test_an_atomic_access_is_a_write(module):
    frozen = np.zeros(4, np.uint32)
    frozen.flags.writeable = False
    with pytest.raises(cl.DriverError, match=r"atomic access .* in argument 0, which"):
        module["add"][1, 1](frozen)
    assert frozen[0] == 0


def test_what_another_argument_allows_can_be_written(module):
    array = np.zeros(64, np.uint32)
    view = array[16:].view()
    view.flags.writeable = False
    module["copy"][1, 24](array[:24], view)
    with pytest.raises(cl.DriverError, match=r"argument 1, (.*\n)*.*thread \(24, 0, 0\)"):
        module["copy"][1, 32](array[:24], view)
