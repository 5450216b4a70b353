"""The emulator's benchmark runs, and its kernels compute what NumPy does."""

import json
import subprocess
import sys

import pytest


@pytest.mark.needs("numpy", "nvrtc")
def test_smoke(benchmarks, tmp_path):
    numbers = tmp_path / "numbers.json"
    command = [sys.executable, str(benchmarks / "emulator.py"), "--quick", "--rounds", "1"]
    command += ["--json", str(numbers)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "vector add, 65,536 elements" in said
    results = json.loads(numbers.read_text())["results"]
    assert [len(result["numpy"]) for result in results] == [1] * 7
