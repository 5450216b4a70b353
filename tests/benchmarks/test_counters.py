"""The emulator's counts are those of the table that was compared with Nsight Compute."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Merged loads of shared memory, and repeated addresses of atomic operations.
DIFFERENT = {("tree", "wavefronts"), ("matmul", "wavefronts"), ("histogram", "sectors")}


def test_counts_are_those_of_the_table(tmp_path):
    out = tmp_path / "counters.json"
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "counters.py", "--emulated", "--json", out],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    recorded = json.loads((ROOT / "docs" / "benchmarks" / "counters.json").read_text())
    assert json.loads(out.read_text())["emulator"] == recorded["emulator"]
    others = {
        (kernel, name)
        for kernel, counts in recorded["emulator"].items()
        for name, count in counts.items()
        if recorded["gpu"][kernel][name] != count
    }
    assert others == DIFFERENT
