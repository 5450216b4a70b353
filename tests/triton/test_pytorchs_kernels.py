"""The kernels that PyTorch tests torch.compile with: all as with Triton, graphs included."""

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


def test_results_graphs_and_errors(tmp_path):
    program = Path(__file__).with_name("pytorch_program.py")
    printed = []
    for how in ("triton", "installed"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", program, tmp_path, how],
            check=False, capture_output=True, text=True, timeout=600,
            env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.splitlines())
    own, installed = printed
    assert sum("triton_kernel_wrapper_functional" in line for line in own) >= 10
    assert sum("Error: " in line for line in own) >= 2
    for line, other in zip(own, installed, strict=True):
        assert line == other
    # What was compared went natively.
    lines = done.stderr.splitlines()
    native = [int(line.split()[1]) for line in lines if line.startswith("torch.testing")]
    assert sum(native) >= 50
