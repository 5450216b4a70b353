"""The projects that make wheels with kernels inside, built and used from outside the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

PROJECTS = Path(__file__).parents[2] / "examples" / "kernel_wheels"
pytestmark = [pytest.mark.slow, pytest.mark.needs("g++", "nvrtc")]
# Python's own flags have -O3 and -g, which double the compilation of PyTorch's headers.
FLAGS = dict.fromkeys(("CFLAGS", "CXXFLAGS"), "-O0 -g0")


def pip(*words, **environment):
    done = subprocess.run(
        [sys.executable, "-m", "pip", *map(str, words), "--no-deps", "--no-index", "-q"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **FLAGS, "MAX_JOBS": "2", **environment},
    )
    if "No module named pip" in done.stderr:
        pytest.skip("needs pip")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def use_wheel(run_after_torch, tmp_path, has):
    """Build a project's wheel, install it elsewhere, and run code that imports it."""

    def run(project, code, *options, **environment):
        # A copy: a build leaves files in the project.
        place = shutil.copytree(PROJECTS / project, tmp_path / "a project")
        words = ("wheel", place, "--no-build-isolation", "-w", tmp_path / "wheels", *options)
        pip(*words, **environment)
        (wheel,) = (tmp_path / "wheels").glob("*.whl")
        pip("install", wheel, "--target", tmp_path / "site")
        shutil.rmtree(place)
        driver = {} if has("gpu") else {"CULAUNCH_DRIVER": "emulator"}
        path = os.pathsep.join([str(tmp_path / "site"), *sys.path])
        environment = {**os.environ, **driver, "PYTHONPATH": path}
        done = run_after_torch(["-c", code], env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return wheel, done.stdout

    return run


USE_SCALE_KERNELS = """
import sys
import numpy as np, scale_kernels
assert "culaunch" not in sys.modules  # it needs none where it is used
x = np.arange(1000, dtype=np.float32)
y = np.empty_like(x)
try:
    scale_kernels.scale(y, x, 2.5)
    print(y[-1])
except ValueError as error:
    print(error)
"""


@pytest.mark.needs("tvm_ffi", "cmake", "ninja", "scikit_build_core")
def test_scikit_build_core(use_wheel, tmp_path, has):
    options = ["-C", "cmake.define.SCALE_ARCHITECTURES=80-virtual"]
    options += ["-C", "cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0"]
    wheel, said = use_wheel("scikit_build_core", USE_SCALE_KERNELS, *options)
    assert "-py3-none-" in wheel.name
    assert said.startswith("x must be in memory of the driver" if has("gpu") else "2497.5")
    (library,) = (tmp_path / "site" / "scale_kernels").glob("*.so")
    assert "def scale(y: Array, x: Array, factor: float, /) -> None:" in cl.cpp.stubs(library)


USE_SCALE_TORCH = """
import torch, scale_torch
x = torch.arange(1000, dtype=torch.float32, device="cuda" if torch.cuda.is_available() else "cpu")
assert torch.equal(scale_torch.scale(x, 2.5), x * 2.5)
try:
    scale_torch.scale(x.half(), 2.5)
except RuntimeError as error:
    print(str(error).splitlines()[0])
"""


@pytest.mark.needs("torch", "setuptools")
def test_setuptools_and_torch(use_wheel):
    # Clang compiles the headers of PyTorch in a third of the time that GCC takes.
    clang = shutil.which("clang++")
    _, said = use_wheel("setuptools", USE_SCALE_TORCH, **({"CXX": clang} if clang else {}))
    assert said == "x must be contiguous float32\n"
