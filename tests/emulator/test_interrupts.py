"""Exceptions that come from outside, such as Ctrl-C, arrive after the driver call as themselves."""

from __future__ import annotations

import functools
import gc
import signal
import sys
import threading
import time
import types

import numpy as np
import pytest

import culaunch as cl
from culaunch import testing
from culaunch._core import DriverFunction

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="needs timers that send signals"
)

PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry forever(.param .u64 out) {
.reg .b64 %at; .reg .b32 %i;
ld.param.u64 %at, [out]; mov.u32 %i, 0;
again: add.u32 %i, %i, 1; st.global.u32 [%at], %i; bra again;
}
.visible .entry set(.param .u64 out, .param .u32 value) {
.reg .b64 %at; .reg .b32 %v, %i; ld.param.u64 %at, [out]; ld.param.u32 %v, [value];
mov.u32 %i, %tid.x; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %v; ret;
}
"""  # fmt: skip


class Stop(BaseException):
    pass


class TimesUp(Exception):
    """A typical error of a SIGALRM handler: an Exception, as a defect of the emulator would be."""


@pytest.fixture(autouse=True)
def emulator():
    # The emulator cannot guard a test library's work in the garbage collector, or leftovers of
    # other tests: Python discards exceptions in a __del__.
    gc.collect()
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    with testing.use_driver("emulator"):
        yield
    gc.callbacks[:] = callbacks


@pytest.fixture
def alarm():
    """Have an exception raised after some seconds of work (SIGALRM is pytest-timeout's)."""

    def arm(seconds, kind):
        def handler(*_):
            raise kind("time")

        signal.signal(signal.SIGPROF, handler)
        signal.setitimer(signal.ITIMER_PROF, seconds)

    before = signal.getsignal(signal.SIGPROF)
    yield arm
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture
def module():
    module = cl.load(PTX)
    # Imports what a launch needs, before any signal: an interrupted import leaves its file open.
    assert works(module)
    return module


def works(module):
    y = cl.to_device(np.zeros(8, np.uint32))
    module["set"][1, 8](y, 5)
    return y.numpy().tolist() == [5] * 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Stop, TimesUp])
def test_a_kernel_is_stopped(module, alarm, kind, capsys):
    y = np.zeros(1, np.uint32)
    alarm(0.1, kind)
    with pytest.raises(kind) as caught:
        module["forever"][1, 1](y)
    assert str(caught.value) == "time"
    assert y[0] > 0
    assert works(module)
    assert "Exception ignored" not in capsys.readouterr().err


def rounds(alarm, kind, body, seconds=0.4):
    """Run a body for some time under many signals; count the signals and the exceptions.

    It is processor time, because the machine may be busy. Signals come after up to 3 ms, or four
    times the body's time. So they interrupt it at every moment, and sometimes it finishes.
    """
    body()  # decodes and compiles the kernel, once
    start = time.process_time()
    body()
    longest = max(3e-3, 4 * (time.process_time() - start))
    raised, end, wait = 0, time.process_time() + seconds * longest / 3e-3, 1e-4
    while time.process_time() < end:
        wait = wait * 1.31 if wait < longest else 1e-4
        try:
            alarm(wait, kind)
            for _ in range(10_000):
                body()
            pytest.fail("the exception was lost")
        except kind:
            raised += 1
    return raised


@pytest.mark.slow
def test_no_copy_is_half_done_and_called_a_success(module, alarm):
    numbers = np.arange(5000, dtype=np.uint32)
    finished = 0

    def body():
        nonlocal finished
        assert np.array_equal(cl.to_device(numbers).numpy(), numbers)
        finished += 1

    assert rounds(alarm, KeyboardInterrupt, body) > 20
    assert finished > 20
    assert works(module)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_every_moment_of_a_launch(module, alarm, monkeypatch, engine):
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
    y = np.zeros(8, np.uint32)
    finished = 0

    def body():
        nonlocal finished
        y[:] = 0
        module["set"][1, 8](y, 7)
        assert y.tolist() == [7] * 8
        finished += 1

    assert rounds(alarm, TimesUp, body) > 20
    assert finished > 20
    assert works(module)


def interrupted_at(body, number):
    """Run a body and raise where its Python call of this number begins; return how many it has."""
    calls = 0

    def trace(*_):
        nonlocal calls
        calls += 1
        if calls == number:
            raise TimesUp("time")

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        body()
    finally:
        sys.settrace(before)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_every_call_of_a_first_launch(monkeypatch, engine):
    # Loading, decoding and compiling a kernel happens once, so signals seldom come at that time.
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
    y = np.zeros(8, np.uint32)
    discarded = []  # in a weak reference's callback, which Python does not let raise

    def body():
        y[:] = 0
        with cl.load(PTX) as first:
            first["set"][1, 8](y, 7)
        assert y.tolist() == [7] * 8

    body()
    monkeypatch.setattr(sys, "unraisablehook", lambda event: discarded.append(event.exc_value))
    calls, lost = interrupted_at(body, 0), []
    for number in range(1, calls):
        discarded.clear()
        try:
            reached = interrupted_at(body, number)
        except TimesUp:
            continue
        if reached >= number and not any(isinstance(error, TimesUp) for error in discarded):
            lost.append(number)
    assert calls > 500
    assert lost == []
    body()


@pytest.mark.slow
def test_loading_unloading_and_synchronising(module, alarm):
    stream = cl.Stream()

    def body():
        with cl.load(PTX) as other:
            other["set"]
            cl.synchronize()
        stream.synchronize()

    assert rounds(alarm, KeyboardInterrupt, body) > 20
    assert works(module)


def test_another_thread_is_stopped_too(module):
    import ctypes

    y, caught = np.zeros(1, np.uint32), []

    def work():
        try:
            module["forever"][1, 1](y)
        except BaseException as error:  # noqa: BLE001
            caught.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    while y[0] == 0:
        time.sleep(0.01)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Stop))
    thread.join(120)
    assert caught == [Stop]
    assert works(module)


def failing_driver():
    """Return a function of a driver whose call is interrupted."""

    def interrupted():
        raise Stop("time")

    state = types.SimpleNamespace(lock=threading.RLock())
    return DriverFunction(state, interrupted, lambda _, error: error, False)


def call_from_c(*functions):
    """Call functions one after another, with no Python code between them."""
    list(map(functools.partial.__call__, map(functools.partial, functions)))


def test_an_exception_waits_for_the_call_that_reached_the_driver():
    # C code that calls the driver may run a finalizer next, in which Python discards exceptions.
    driver, events = failing_driver(), []

    def finalizer():
        for _ in range(3):
            events.append("step")

    def ignores_the_failure():
        call_from_c(driver, finalizer)
        events.append("went on")

    with pytest.raises(Stop, match="time"):
        ignores_the_failure()
    assert events == ["step"] * 3


def test_an_exception_arrives_in_a_call_that_goes_on():
    end = time.monotonic() + 60

    def forever():
        while time.monotonic() < end:
            pass

    with pytest.raises(Stop, match="time"):
        call_from_c(failing_driver(), forever)
    assert time.monotonic() < end
