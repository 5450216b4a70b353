"""The recording driver in place of libcuda, for the tests of the launch path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for recording and fake_arrays

from recording import RecordingDriver

from culaunch._launch import _driver

NAME = "/recorder"  # where a library's path would stand


@pytest.fixture
def install(monkeypatch):
    """Make recording drivers the driver in use, the last one made."""
    made = []

    def make(**options) -> RecordingDriver:
        driver = RecordingDriver(**options)
        made.append(driver)
        monkeypatch.setitem(_driver._drivers, NAME, driver.core)
        monkeypatch.setenv("CULAUNCH_DRIVER", NAME)
        return driver

    yield make
    for driver in made:
        for defect in driver.defects:
            raise defect


@pytest.fixture
def driver(install):
    """A recording driver of CUDA memory, on two devices."""
    return install()


@pytest.fixture
def host_driver(install):
    """A recording driver whose device is the CPU, as the emulator's is: NumPy's arrays are its."""
    return install(device_types=(1,), devices=1)
