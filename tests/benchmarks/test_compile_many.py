"""The benchmark of compile_many runs."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("cuda.bindings")


def test_smoke(benchmarks, tmp_path):
    numbers = tmp_path / "numbers.json"
    command = [sys.executable, str(benchmarks / "compile_many.py"), "--quick"]
    command += ["--engines", "threads,fork", "--json", str(numbers)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "one process" in said
    assert set(json.loads(numbers.read_text())["results"]) == {"one process", "threads", "fork"}
