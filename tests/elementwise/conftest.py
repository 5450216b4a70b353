"""Elementwise functions are tested on the emulated driver, and on a GPU if there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import culaunch as cl
from culaunch import _core

sys.path.insert(0, str(Path(__file__).parent))  # for reference


@pytest.fixture(autouse=True)
def driver(request, monkeypatch):
    """Choose the emulator for the tests that are not for a GPU."""
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
        cl.driver.set_driver("emulator")
        # Small arrays take the kernels of large ones, unless a test says otherwise.
        _core.Elementwise._set_busy_threads(0)
    yield
    _core.Elementwise._set_busy_threads(-1)
