"""The recording driver, with the CPU's memory as its device's; kernels to compile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "shared"))  # for the kernels
sys.path.insert(0, str(Path(__file__).parents[1] / "launch"))  # for recording

from recording import RecordingDriver, recorders


@pytest.fixture
def emulator(monkeypatch):
    """Choose the emulator, for what this test runs and starts."""
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")


@pytest.fixture
def frees_kernels():
    """Skip where Triton itself keeps every kernel that it has compiled."""
    import triton

    if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 7):
        pytest.skip("needs a Triton that frees what it compiled, which 3.7 to 3.9 do not")


@pytest.fixture(scope="module")
def kernels():
    """The kernels with decorators."""
    import decorated_kernels

    return decorated_kernels


@pytest.fixture
def on_emulator(monkeypatch):
    """Run on the emulator, and leave Triton the active driver that it had."""
    import triton

    from culaunch import testing

    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    active = triton.runtime.driver
    before = getattr(active, "_active", None)
    with testing.use_driver("emulator"):
        yield
    if before is None and hasattr(active, "_active"):
        active._active = None
    else:
        active.set_active(before)


@pytest.fixture(params=["install", "native"])
def launched(request, on_emulator):
    """Give what makes a kernel native."""
    from culaunch.triton import install, native

    if request.param == "native":
        yield native
    else:
        with install():
            yield lambda kernel: kernel


@pytest.fixture
def install(monkeypatch):
    """Make recording drivers of the CPU's memory the driver in use, the last one made."""
    yield from recorders(monkeypatch, device_types=(1,), devices=1)


@pytest.fixture
def recorder(install):
    """A recording driver with an H100 whose memory is the CPU's."""
    return install()


@pytest.fixture(scope="module")
def recorder_module():
    """One for a whole module that launches nothing."""
    recorder = RecordingDriver(device_types=(1,), devices=1)
    recorder.recording = False
    yield recorder
    for defect in recorder.defects:
        raise defect


@pytest.fixture(scope="session")
def tutorials():
    """The kernels of Triton's tutorials."""
    import tutorials

    return tutorials


@pytest.fixture
def add_set(compiled_set):
    """A set that has met no driver yet: it keeps the one that it meets first."""
    import culaunch.triton as ct

    return ct.KernelSet(compiled_set._saved)


@pytest.fixture(scope="session")
def compiled_set(tutorials):
    """Two signatures, two configurations, two architectures."""
    from sets import FLOATS, HALVES

    import culaunch.triton as ct

    return ct.compile(
        tutorials.add, [FLOATS, HALVES], arch=["sm_80", "sm_90a"],
        configs=[{"BLOCK": 256}, {"BLOCK": 512, "num_warps": 8}], keep_ptx=True,
    )  # fmt: skip
