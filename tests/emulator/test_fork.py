"""Forked processes launch on the emulator, whatever other threads did."""

from __future__ import annotations

import multiprocessing
import os
import threading

import numpy as np
import pytest
from emulator_internals import Device

import culaunch as cl
from culaunch import testing
from culaunch._emulator.driver.state import DriverState

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    # CPython 3.12 and newer warn of every fork beside threads.
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    # So does JAX, if another test has imported it: it does nothing in the child.
    pytest.mark.filterwarnings("ignore:os.fork.* was called:RuntimeWarning"),
]

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry set(.param .u64 out, .param .u32 value) {
.reg .b64 %at; .reg .b32 %v; ld.param.u64 %at, [out]; ld.param.u32 %v, [value];
st.global.u32 [%at], %v; ret;
}
"""


@pytest.fixture(autouse=True)
def emulator():
    with testing.use_driver("emulator"):
        yield


def code_in_child(body):
    """Run a body in a forked process; give its exit code, 0 if it returned true."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if body() else 2
        finally:
            os._exit(code)
    for _ in range(6000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        threading.Event().wait(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "it hangs"


def launch(module):
    y = np.zeros(1, np.uint32)
    module["set"][1, 1](y, 5)
    return y[0] == 5 and cl.to_device(y).numpy()[0] == 5


@pytest.mark.slow
def test_a_child_beside_a_thread_that_launches():
    module = cl.load(PTX)
    kernel, stop = module["set"], threading.Event()

    def work():
        y = np.zeros(1, np.uint32)
        while not stop.is_set():
            kernel[1, 1](y, 3)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        codes = [code_in_child(lambda: launch(module)) for _ in range(5)]
    finally:
        stop.set()
        thread.join()
    assert codes == [0] * 5


def test_the_driver_is_published_in_the_child_too():
    cl.driver.driver_name()
    published = os.environ["CULAUNCH_DRIVER_TABLE"]

    def body():
        own, _, address = os.environ["CULAUNCH_DRIVER_TABLE"].partition(":")
        return own == str(os.getpid()) and address == published.partition(":")[2]

    assert code_in_child(body) == 0


def in_worker(value):
    y = np.zeros(1, np.uint32)
    cl.load(PTX)["set"][1, 1](y, value)
    return int(y[0])


def test_workers_as_of_a_data_loader():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(in_worker, range(6)) == list(range(6))


def test_a_fork_within_a_call_keeps_the_calls_lock():
    """The thread that forked has it in the child, too, and lets it go there."""
    state = DriverState(Device())
    with state.device.lock:
        held = state.lock
        assert code_in_child(lambda: state.lock is held) == 0
    taken = threading.Event()
    done = threading.Event()

    def hold():
        with state.device.lock:
            taken.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait(60)
    try:
        assert code_in_child(lambda: state.lock is not held and state.lock.acquire(timeout=0)) == 0
    finally:
        done.set()
        thread.join()
