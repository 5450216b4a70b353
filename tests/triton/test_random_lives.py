"""Between calls all sorts of things change: what is launched is what Triton itself launches."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
    ),
    pytest.mark.skipif(
        shutil.which("gcc") is None or triton.__version__[:3] != "3.6",
        reason="needs gcc and Triton 3.6, whose launcher the driver of the test is written for",
    ),
]
# `CULAUNCH_TEST_LIVES=0:100` in the environment says which.
LIVES = os.environ.get("CULAUNCH_TEST_LIVES", "0:4").split(":")


def test_random_lives(tmp_path):
    program = Path(__file__).with_name("random_lives.py")
    printed = []
    for how in ("triton", "installed"):
        # What is compiled while a global is another than it was is kept under the old one's key, by
        # Triton itself: where there are many lives, one would meet what another has left.
        cache = tmp_path / (how if "CULAUNCH_TEST_LIVES" in os.environ else "cache")
        done = subprocess.run(
            [sys.executable, program, tmp_path, how, *LIVES],
            check=False, capture_output=True, text=True, timeout=3000,
            env={**os.environ, "TRITON_CACHE_DIR": str(cache)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    own, installed = printed
    assert len(own) == 40 * (int(LIVES[1]) - int(LIVES[0]))
    for line, other in zip(own, installed, strict=True):
        assert line == other
