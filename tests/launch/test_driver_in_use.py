"""The driver in use is known natively, and is always the one that the environment says."""

import os
import sys
import threading

import pytest
from recording import NAME, RecordingDriver

import culaunch as cl
from culaunch import _core
from culaunch._launch import upcalls
from culaunch._launch.devices import driver as drivers


@pytest.fixture
def environment(monkeypatch):
    """An environment that names no driver, and two that are opened already."""
    for name in ("CULAUNCH_DRIVER", "CULAUNCH_DRIVER_TABLE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    opened = {name: RecordingDriver().core for name in ("/first.so", "/second.so", "cuda")}
    monkeypatch.setattr(drivers, "open_drivers", opened)
    monkeypatch.setattr(drivers, "check_choice", lambda *_: None)
    return monkeypatch


@pytest.fixture
def asked(environment):
    """Python is asked: how often."""
    calls = []

    class Counting:
        def __getattr__(self, name):
            if name != "choose_driver":
                return getattr(upcalls, name)
            return lambda: calls.append(1) or drivers.choose_driver()

    _core.set_upcalls(launch=Counting())
    yield calls
    _core.set_upcalls(launch=upcalls)


def test_python_is_asked_where_something_has_changed(environment, asked):
    opened = drivers.open_drivers
    changes = [
        lambda: environment.setenv("CULAUNCH_DRIVER", "/first.so"),
        lambda: environment.setenv("CULAUNCH_DRIVER", "/second.so"),
        lambda: environment.setitem(os.environ, "CULAUNCH_DRIVER", "/first.so"),
        lambda: environment.setitem(opened, "/first.so", RecordingDriver().core),
        lambda: environment.delenv("CULAUNCH_DRIVER"),  # cuda
        lambda: environment.setenv("CULAUNCH_DRIVER", ""),  # cuda, too
        lambda: environment.setattr(drivers, "open_drivers", {"cuda": opened["/second.so"]}),
        lambda: environment.setattr(
            os, "environ", type(os.environ)(
                {}, os.environ.encodekey, os.environ.decodekey, os.environ.encodevalue,
                os.environ.decodevalue,
            )
        ),
    ]  # fmt: skip
    for number, change in enumerate(changes):
        change()
        name = os.environ.get("CULAUNCH_DRIVER") or "cuda"
        for _ in range(3):
            assert _core.current_driver() is drivers.open_drivers[name]
        assert len(asked) == number + 1


def test_what_changes_elsewhere_is_nothing(environment, asked):
    environment.setenv("CULAUNCH_DRIVER", "/first.so")
    first = drivers.current_driver()
    environment.setenv("SOMETHING_ELSE", "1")
    drivers.open_drivers["/third.so"] = RecordingDriver().core
    os.environ.update({"SOMETHING_ELSE": "2"})
    assert drivers.current_driver() is first
    assert len(asked) == 1


def test_blocks_inside_of_blocks(environment, asked):
    from culaunch.testing import use_driver

    def in_use():
        return drivers.current_driver() is drivers.open_drivers[os.environ["CULAUNCH_DRIVER"]]

    environment.setenv("CULAUNCH_DRIVER", "/first.so")
    with use_driver("/second.so"):
        assert in_use()
        with use_driver("cuda"):
            assert in_use()
        assert in_use()
        assert os.environ["CULAUNCH_DRIVER"] == "/second.so"
    assert in_use()
    assert os.environ["CULAUNCH_DRIVER"] == "/first.so"


def test_a_driver_that_is_not_there_is_looked_for_each_time(environment, asked):
    environment.delitem(drivers.open_drivers, "cuda")
    environment.setenv("CULAUNCH_DRIVER", "/no/such/driver.so")
    for number in range(1, 4):
        with pytest.raises(cl.DriverNotFoundError):
            drivers.current_driver()
        assert len(asked) == number


def test_the_emulators_table_is_published_again(monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    emulator = drivers.current_driver()
    for change in (
        lambda: monkeypatch.delenv("CULAUNCH_DRIVER_TABLE"),
        lambda: monkeypatch.setenv("CULAUNCH_DRIVER_TABLE", ""),
    ):
        change()
        assert drivers.current_driver() is emulator
        assert os.environ["CULAUNCH_DRIVER_TABLE"].startswith(f"{os.getpid()}:")


def test_an_environment_that_is_no_dict_is_asked(environment, asked):
    class Other(dict):
        pass

    environment.setattr(os, "environ", Other(CULAUNCH_DRIVER="/first.so"))
    for number in (1, 2):
        assert drivers.current_driver() is drivers.open_drivers["/first.so"]
        assert len(asked) == number


def test_threads_see_each_change(environment):
    """While one thread changes the choice, others get one of the two, and the last in the end."""
    names = ("/first.so", "/second.so")
    environment.setenv("CULAUNCH_DRIVER", names[0])
    known = {id(drivers.open_drivers[name]) for name in names}
    wrong, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            if id(drivers.current_driver()) not in known:
                wrong.append(1)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for i in range(300):
            os.environ["CULAUNCH_DRIVER"] = names[i % 2]
            assert drivers.current_driver() is drivers.open_drivers[names[i % 2]]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert wrong == []


def test_a_call_runs_on_the_driver_that_was_just_chosen(install):
    """The extension asks itself: a call without an array is of the driver in use."""
    first = install(device_types=(2,), devices=2)

    @cl.function
    def made(n: int):
        return cl.zeros((n,), "uint8")

    made(4)
    second = install(device_types=(2,), devices=2)
    assert os.environ["CULAUNCH_DRIVER"] == NAME
    made(4)
    made(4)
    assert (first.count("cuMemAlloc"), second.count("cuMemAlloc")) == (1, 2)


def test_what_is_noted_wrongly(driver):
    core = driver.core
    for arguments in (
        (),
        (core,),
        (5, ()),
        (core, [()]),
        (core, ((1, "a", None),)),
        (core, (({}, 5, None),)),
        (core, (({}, "a"),)),
        (core, ("abc",)),
    ):
        with pytest.raises(TypeError):
            _core.note_driver(*arguments)
    assert drivers.current_driver() is core
