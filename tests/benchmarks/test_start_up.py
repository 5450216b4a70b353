"""The benchmark of many processes that start on one library runs."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.needs("triton")
def test_smoke(benchmarks, tmp_path):
    numbers = tmp_path / "numbers.json"
    command = [sys.executable, str(benchmarks / "start_up.py"), "--processes", "1,3"]
    command += ["--variants", "100", "--json", str(numbers)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "own MB" in said
    alone, several = json.loads(numbers.read_text())
    assert (alone["processes"], several["processes"]) == (1, 3)
    # A library of 4 MB: no process has a copy of it, and what they have in common counts in parts.
    for row in (alone, several):
        assert row["private_kb"] < 4000
    assert several["pss_kb"] < several["rss_kb"]
