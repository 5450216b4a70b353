"""Choosing a driver: by name, by the environment, by a table of functions; what is refused."""

import ctypes
import os
import subprocess
import sys

import pytest
from driver_tables import PROTOTYPES
from recording import RecordingDriver

import culaunch as cl
from culaunch import _core
from culaunch._launch.devices import driver as drivers


@pytest.fixture
def environment(monkeypatch):
    """An environment that names no driver, and no driver opened yet."""
    for name in ("CULAUNCH_DRIVER", "CULAUNCH_DRIVER_TABLE"):
        monkeypatch.setenv(name, "")  # undoes the changes of the test
        monkeypatch.delenv(name)
    monkeypatch.setattr(drivers, "open_drivers", {})
    return monkeypatch


def test_a_table_of_functions(install):
    driver = install(device_types=(1, 7), version=12040, devices=3)
    core = driver.core
    assert (core.name, core.version, core.device_count) == ("recorder", 12040, 3)
    assert core.device_types == (1, 7)
    assert cl.driver.driver_name() == "recorder"
    assert core.describe(700) == "CUDA_ERROR_ILLEGAL_ADDRESS (700): text of 700"
    assert core.describe(54321) == "CUresult 54321 (54321)"


def test_a_table_without_a_function_is_refused(install):
    functions = dict.fromkeys(PROTOTYPES, 1)
    del functions["cuLaunchKernelEx"], functions["cuMemAlloc"], functions["cuTensorMapEncodeTiled"]
    with pytest.raises(ValueError, match=r"lacks cuLaunchKernelEx cuMemAlloc$"):
        _core.Driver.from_functions("x", functions, (2,))
    with pytest.raises(TypeError):
        _core.Driver.from_functions("x", dict.fromkeys(PROTOTYPES, "address"), (2,))
    with pytest.raises(TypeError):
        _core.Driver.from_functions("x", functions, [2])
    with pytest.raises(TypeError):
        _core.Driver()


@pytest.mark.parametrize("version", [0, 11080, 12000, 12030, 12039])
def test_a_driver_that_is_too_old(version):
    with pytest.raises(cl.DriverNotFoundError) as caught:
        RecordingDriver(version=version)
    text = str(caught.value)
    assert f"got one for CUDA {version // 1000}.{version % 1000 // 10}" in text
    assert "CUDA 12.4 or newer" in text
    assert "550 or newer" in text


def test_a_driver_that_cannot_be_initialised():
    class Broken(RecordingDriver):
        def cuInit(self, flags):
            return 999

    with pytest.raises(cl.DriverNotFoundError, match="cannot be initialized: CUDA_ERROR_UNKNOWN"):
        Broken()


def test_a_machine_without_devices(install):
    driver = install(devices=0)
    assert cl.driver.device_count() == 0
    assert cl.driver.devices() == ()
    with pytest.raises(ValueError, match="no device 0: this machine has 0"):
        cl.driver.Device(0)
    with pytest.raises((ValueError, cl.DriverError)):
        driver.kernel(4)[1, 1](1)
    with pytest.raises((ValueError, cl.DriverError)):
        cl.empty(3, "f4")


# ---- by name


@pytest.mark.parametrize("name", ["", "nonsense", "libcuda.so.1", "CUDA"])
def test_a_name_that_is_none(environment, name):
    with pytest.raises(ValueError, match="must be 'cuda', 'emulator' or the path of a library"):
        cl.driver.set_driver(name)
    assert "CULAUNCH_DRIVER" not in os.environ


@pytest.mark.parametrize("name", [None, 5, b"cuda", ["cuda"]])
def test_a_name_of_another_type(environment, name):
    with pytest.raises(TypeError, match="name must be a str"):
        cl.driver.set_driver(name)


def test_a_library_that_is_not_there(environment, tmp_path):
    with pytest.raises(cl.DriverNotFoundError, match=r"missing\.so"):
        cl.driver.set_driver(str(tmp_path / "missing.so"))
    assert "CULAUNCH_DRIVER" not in os.environ
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not a library")
    with pytest.raises(cl.DriverNotFoundError, match=r"broken\.so"):
        cl.driver.set_driver(str(broken))


def test_a_library_that_is_no_driver(environment):
    import _ctypes

    with pytest.raises(cl.DriverNotFoundError, match="no function cuInit"):
        cl.driver.set_driver(_ctypes.__file__)


def test_the_environment_names_the_driver(environment):
    environment.setenv("CULAUNCH_DRIVER", "nonsense")
    with pytest.raises(ValueError, match="nonsense"):
        cl.driver.driver_name()
    environment.setenv("CULAUNCH_DRIVER", "/no/such/driver.so")
    with pytest.raises(cl.DriverNotFoundError, match="/no/such/driver"):
        cl.load(b".version 8.0\n.target sm_90\n")


def test_without_a_driver_the_error_says_what_to_do(environment, has):
    if has("gpu"):
        cl.driver.set_driver("cuda")
        assert cl.driver.driver_name() == "cuda"
        return
    with pytest.raises(cl.DriverNotFoundError) as caught:
        cl.driver.device_count()
    text = str(caught.value)
    assert "no CUDA driver on this machine (libcuda.so.1" in text
    assert "CULAUNCH_DRIVER=emulator" in text
    assert 'culaunch.driver.set_driver("emulator")' in text


def test_the_emulator_is_chosen_and_left(environment, install):
    pytest.importorskip("numpy")
    cl.driver.set_driver("emulator")
    assert cl.driver.driver_name() == "emulator"
    assert os.environ["CULAUNCH_DRIVER"] == "emulator"
    assert os.environ["CULAUNCH_DRIVER_TABLE"].startswith(f"{os.getpid()}:")
    install()
    assert cl.driver.driver_name() == "recorder"


def test_child_processes_make_the_same_choice(environment):
    cl.driver.set_driver("emulator")
    code = "import culaunch as cl; print(cl.driver.driver_name())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "emulator\n"


def test_a_failed_initialisation_is_tried_again(environment, install):
    environment.setenv("CULAUNCH_DRIVER", "/no/such/driver.so")
    for _ in range(2):
        with pytest.raises(cl.DriverNotFoundError):
            cl.driver.device_count()
    install()
    assert cl.driver.device_count() == 2


# ---- what no caller should get wrong


def test_wrong_calls_of_the_native_half(driver):
    core = driver.core
    for call in (
        lambda: _core.Module(5, b"x"),
        lambda: _core.Module(core, 5),
        lambda: _core.Kernel(core, "k", None),
        lambda: _core.DeviceArray(5, 0, (1,), 2, 32, 1),
        lambda: _core.DeviceArray(core, 0, [1], 2, 32, 1),
        lambda: _core.DeviceArray(core, 0, ("x",), 2, 32, 1),
        lambda: core.with_memory([1]),
        lambda: _core.array_info(core),
        lambda: _core.array_info(5, 5),
        lambda: _core.Launcher(),
    ):
        with pytest.raises(TypeError):
            call()
    for shape in ((-1,), (2**62, 2**62), (2**64,)):
        with pytest.raises((ValueError, OverflowError)):
            _core.DeviceArray(core, 0, shape, 2, 32, 1)
    assert ctypes.sizeof(ctypes.c_void_p) == 8
