"""The recording driver, with the CPU's memory as its device's; kernels to compile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the kernels
sys.path.insert(0, str(Path(__file__).parents[1] / "launch"))  # for recording

from recording import RecordingDriver, recorders


def pytest_collection_modifyitems(items):
    """Triton 3.9 warns of a default of its own that it is going to change."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION"))


@pytest.fixture
def install(monkeypatch):
    """Make recording drivers of the CPU's memory the driver in use, the last one made."""
    yield from recorders(monkeypatch, device_types=(1,), devices=1)


@pytest.fixture
def recorder(install):
    """A recording driver whose device, an H100 but for its memory, is the CPU."""
    return install()


@pytest.fixture(scope="module")
def recorder_module():
    """One for a whole module that launches nothing."""
    recorder = RecordingDriver(device_types=(1,), devices=1)
    recorder.recording = False
    yield recorder
    for defect in recorder.defects:
        raise defect
