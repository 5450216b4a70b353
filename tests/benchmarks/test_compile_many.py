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
    results = json.loads(numbers.read_text())["results"]
    assert set(results) == {"one process", "apart", "threads", "fork"}
    for found in results.values():
        assert found["seconds"] > 0 < found["cpu_seconds"]
