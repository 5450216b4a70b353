"""Tests that hold culaunch against Triton's own launcher, on the emulated driver."""

import os
import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(
        torch.cuda.is_available(), reason="needs no-GPU: with one Triton has a driver of its own"
    ),
    pytest.mark.skipif(
        shutil.which("gcc") is None or triton.__version__[:3] != "3.6",
        reason="needs gcc and Triton 3.6, whose launcher the driver of the test is written for",
    ),
]


def run_both(run_after_torch, name, folder, *arguments, apart=False):
    """Run a program of this folder by Triton and then natively, on one disk cache or apart.

    Return the lines that each printed, and the errors of the second.
    """
    printed = []
    for how in ("triton", "installed"):
        done = run_after_torch(
            ["-W", "ignore", Path(__file__).with_name(name), folder, how, *arguments],
            env={**os.environ, "TRITON_CACHE_DIR": str(folder / (how if apart else "cache"))},
            timeout=3000,
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    return *printed, done.stderr
