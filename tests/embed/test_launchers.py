"""The launcher examples: without a GPU they run on the emulated driver."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

LAUNCHERS = Path(__file__).parents[2] / "examples" / "launchers"
NEEDS = ("g++", "tvm_ffi", "numpy", "nvrtc")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("embedded", marks=pytest.mark.needs(*NEEDS)),
        pytest.param("dynamic", marks=pytest.mark.needs(*NEEDS)),
        pytest.param("nvrtc", marks=pytest.mark.needs(*NEEDS)),
        pytest.param("triton_embedded", marks=pytest.mark.needs(*NEEDS, "triton")),
    ],
)
def test_launcher(run_after_torch, tmp_path, has, unoptimized, name):
    environment = {**os.environ, **unoptimized}
    if not has("gpu"):
        environment["CULAUNCH_DRIVER"] = "emulator"
    words = ["-W", "error", LAUNCHERS / f"{name}.py"]
    done = run_after_torch(words, cwd=tmp_path, env=environment)  # TVM-FFI imports torch
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
