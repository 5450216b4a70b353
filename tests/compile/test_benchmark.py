"""A smoke run of the compile benchmark, as a user starts it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "compile.py"


@pytest.mark.slow
def test_every_row_is_measured_or_named(tmp_path):
    target = tmp_path / "numbers.json"
    command = [sys.executable, SCRIPT, "--quick", "--json", target]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = json.loads(target.read_text())
    for name in ("culaunch, cold, plain", "culaunch, hit in a second process"):
        assert min(numbers["seconds"][name]) > 0
    for count in (1, 2):
        rows = [name for name in numbers["seconds"] if name.startswith(f"{count} process")]
        assert len(numbers["seconds"][rows[0]]) == count
    named = [*numbers["seconds"], *numbers["missing"]]
    for peer in ("CuPy", "cuda-core", "torch"):
        assert any(name.startswith(peer) for name in named), peer
