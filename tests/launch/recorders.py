"""Fixtures of the recording driver, for the folders that take them."""

import pytest
from recording import recorders


@pytest.fixture
def install(monkeypatch):
    """Make recording drivers the driver in use, the last one made."""
    yield from recorders(monkeypatch)


@pytest.fixture
def driver(install):
    """A recording driver of CUDA memory, on two devices."""
    return install()


@pytest.fixture
def host_driver(install):
    """A recording driver whose device is the CPU, as the emulator's is: NumPy's arrays are its."""
    return install(device_types=(1,), devices=1)


@pytest.fixture
def known(driver):
    """A driver that knows the addresses which arrays in these tests have."""
    driver.memory.update({0x7000: (0, None), 0x8000: (1, None), 0x7010: (0, None)})
    return driver
