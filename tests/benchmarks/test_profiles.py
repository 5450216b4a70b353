"""The script that compares profiles with benchmarks runs."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "profiles.py"


def test_it_runs_on_the_emulator(tmp_path, monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulator")
    found, trace = tmp_path / "found.json", tmp_path / "trace.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--quick", "--json", found, "--trace", trace],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    read = json.loads(found.read_text())
    assert read["is_emulated"]
    assert read["times"][0]["queued_us"] is None
    assert set(read["host_us"]) == {"before", "inside", "after"}
    assert "graph of scale" in read["profile"]
    assert len(json.loads(trace.read_text())["traceEvents"]) > 20
