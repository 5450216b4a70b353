"""The launcher examples: without a GPU they run on the emulated driver."""

from __future__ import annotations

import os
import subprocess
import sys
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
def test_launcher(tmp_path, has, unoptimized, name):
    environment = {**os.environ, **unoptimized}
    if not has("gpu"):
        environment["CULAUNCH_DRIVER"] = "emulator"
    done = subprocess.run(
        [sys.executable, "-W", "error", LAUNCHERS / f"{name}.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
