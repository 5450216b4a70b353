"""Drivers and kernels for profiles."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the kernels
sys.path.insert(0, str(Path(__file__).parents[1] / "launch"))  # for the recording driver

from recorders import driver, install, known  # noqa: F401 - fixtures


@pytest.fixture
def array():
    return np.zeros(1 << 10, np.int32)


@pytest.fixture
def emulated(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
