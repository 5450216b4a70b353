"""The recording driver in place of libcuda; for tests on a GPU, its kernels, compiled once."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for recording, fake_arrays and what they need

from recorders import driver, host_driver, install, known  # noqa: F401 - fixtures

import culaunch as cl

KERNELS = Path(__file__).parents[1] / "gpu" / "kernels.cu"
ELEMENTS = ("float", "double", "int", "__half", "__nv_bfloat16")


# ---- on a GPU


@pytest.fixture(scope="session")
def gpu_image() -> cl.Image:
    """Compile tests/gpu/kernels.cu for the GPU that is here."""
    names = [f"scale<{element}>" for element in ELEMENTS]
    return cl.compile(KERNELS.read_text(), arch="native", names=names)


@pytest.fixture(scope="session")
def gpu(gpu_image) -> cl.Module:
    """Return the module that the tests on a GPU share."""
    return cl.load(gpu_image)


@pytest.fixture
def sm_90():
    """Skip a test of what only sm_90 and newer have."""
    if cl.driver.Device(0).attribute("compute_capability_major") < 9:
        pytest.skip("needs sm_90")


@pytest.fixture
def unwatched():
    """Skip a test that faults on purpose, or launches a million times, under compute-sanitizer."""
    if any("SANITIZER" in name for name in os.environ):
        pytest.skip("needs no-sanitizer")


@pytest.fixture
def in_child(tmp_path):
    """Run code in a process of its own, with a module loaded from an image; give its output."""

    def run(code, image, timeout=300) -> str:
        path = tmp_path / "kernels.image"
        image.save(path)
        start = f"import culaunch as cl\nmodule = cl.load({str(path)!r})\n"
        done = subprocess.run(
            [sys.executable, "-c", start + textwrap.dedent(code)],
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
