"""The fake driver with launches as graphs, and a module of two kernels on it."""

import sys
from pathlib import Path

import pytest

import culaunch as cl
from culaunch import _core

sys.path.insert(0, str(Path(__file__).parent))
from graph_kernels import PTX, Fake


@pytest.fixture
def fake(fake_driver, monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", str(fake_driver))
    monkeypatch.setenv("CULAUNCH_GRAPHS", "auto")
    cl.graph.set_graphs(True, limit=256)
    driver = _core.current_driver()
    driver.push_device(0)  # a default stream belongs to the current context
    yield Fake(fake_driver)
    driver.pop_device()
    cl.graph.set_graphs("auto", limit=256)


@pytest.fixture
def module(fake):
    with cl.load(PTX.encode()) as module:
        fake.clear()
        yield module
