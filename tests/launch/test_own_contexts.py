"""Objects in a user's own context, which may be destroyed before them, as with PyCUDA."""

import ctypes
import gc
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import culaunch as cl

RELEASES = {
    "cuStreamDestroy", "cuEventDestroy", "cuMemFree", "cuMemFreeHost", "cuArrayDestroy",
    "cuTexObjectDestroy", "cuSurfObjectDestroy",
}  # fmt: skip


def make_all():
    texture = cl.arguments.Texture(np.zeros((2, 3), np.float32))
    return [cl.Stream(), cl.Event(), cl.empty(4), cl.pinned(4), cl.managed(4), texture]


def released(driver):
    return [name for name, _ in driver.calls if name in RELEASES]


def test_what_a_context_took_with_it_is_left_alone(driver):
    own = driver.make_context()
    driver.stack.append(own)
    made = make_all()
    driver.destroy_context(own)
    driver.calls.clear()
    made.clear()
    gc.collect()
    assert released(driver) == []
    assert driver.stack == []


def test_while_it_is_current_everything_is_released(driver):
    driver.stack.append(driver.make_context())
    made = make_all()
    driver.calls.clear()
    made.clear()
    gc.collect()
    assert set(released(driver)) == RELEASES - {"cuSurfObjectDestroy"}
    driver.stack.pop()


def test_another_context_at_the_same_address(driver):
    own = driver.make_context()
    driver.stack.append(own)
    made = make_all()
    driver.destroy_context(own)
    driver.contexts[own] = 0
    driver.stack.append(own)
    driver.calls.clear()
    made.clear()
    gc.collect()
    assert released(driver) == []
    driver.stack.pop()


def test_another_context_that_is_current(driver):
    first, second = driver.make_context(), driver.make_context(device=1)
    driver.stack.append(first)
    event = cl.Event()
    driver.stack.append(second)
    driver.calls.clear()
    del event
    assert released(driver) == []
    assert driver.stack == [first, second]
    driver.stack.clear()


@pytest.mark.parametrize("first", ["lost", "new"])
def test_a_handle_that_is_given_again(driver, first):
    """It is destroyed once, when nobody has it any more."""
    own = driver.make_context()
    driver.stack.append(own)
    objects = {"lost": cl.Event()}
    driver.destroy_context(own)
    driver.events.clear()
    driver._handles = itertools.chain([objects["lost"].handle], driver._handles)
    objects["new"] = cl.Event()
    assert objects["new"].handle == objects["lost"].handle
    driver.calls.clear()
    del objects[first]
    assert released(driver) == []
    objects.clear()
    assert released(driver) == ["cuEventDestroy"]


def test_primary_contexts_are_as_before(driver):
    made = make_all()
    driver.calls.clear()
    made.clear()
    gc.collect()
    assert set(released(driver)) == RELEASES - {"cuSurfObjectDestroy"}
    assert driver.stack == []


def test_a_driver_without_ids(install):
    driver = install(instead={"cuCtxGetId": 0})
    own = driver.make_context()
    driver.stack.append(own)
    kept, lost = cl.Event(), cl.Event()
    driver.calls.clear()
    del kept
    assert released(driver) == ["cuEventDestroy"]
    driver.destroy_context(own)
    driver.calls.clear()
    del lost
    assert released(driver) == []


PYCUDAS_ORDER = """
import atexit, os, sys
sys.path.insert(0, {folder!r})
from recording import the_recorder
import culaunch as cl

class Told(list):
    def append(self, call, write=os.write):
        write(1, call[0].encode() + b" ")

driver = the_recorder()
own = driver.make_context()
driver.stack.append(own)  # import pycuda.autoinit

@atexit.register
def finish():
    if {destroys}:
        driver.destroy_context(own)
    driver.calls = Told()

# What a module still has at the end of Python goes after that.
stream, event, array, host = cl.Stream(), cl.Event(), cl.zeros(4), cl.pinned(4)
"""


@pytest.mark.parametrize("destroys", [True, False])
def test_the_end_of_a_program_in_pycudas_order(destroys):
    program = PYCUDAS_ORDER.format(folder=str(Path(__file__).parent), destroys=destroys)
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = RELEASES & set(done.stdout.split())
    wanted = {"cuStreamDestroy", "cuEventDestroy", "cuMemFree", "cuMemFreeHost"}
    assert found == (set() if destroys else wanted)


@pytest.mark.gpu
def test_on_a_gpu_the_end_of_a_context_is_survived(gpu):
    """PyCUDA's order with its driver calls: many times, since it crashed now and then."""
    libcuda = ctypes.CDLL("libcuda.so.1")
    for _ in range(50):
        own = ctypes.c_void_p()
        assert libcuda.cuCtxCreate_v2(ctypes.byref(own), 0, 0) == 0
        made = [cl.Stream(), cl.Event(), cl.zeros(1000), cl.pinned(1000), cl.managed(1000)]
        stream = made[0]
        gpu["add"][1, 1, 0, stream](cl.zeros(1, "int32"), 1)
        made[1].record(stream)
        assert libcuda.cuCtxDestroy_v2(own) == 0
        after = [cl.zeros(1000), cl.Stream(), cl.Event()]
        made.clear()
        del stream
        gc.collect()
        after[2].record(after[1])
        after[1].synchronize()
        assert after[0].numpy().sum() == 0
