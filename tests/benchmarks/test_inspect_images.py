"""The benchmark of inspection runs; its numbers are for people to read."""

import json
import subprocess
import sys


def test_smoke(benchmarks, tmp_path):
    path = tmp_path / "k.ptx"
    path.write_bytes(b".version 8.5\n.target sm_80\n.visible .entry k() { ret; }\n")
    script = benchmarks / "inspect_images.py"
    command = [sys.executable, str(script), str(path), "--rounds", "1", "--json"]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    (found,) = json.loads(result.stdout)["files"]
    assert (found["images"], found["kernels"]) == (1, 1)
    assert found["times"]["inspect"]["wall"] > 0
    assert found["times"]["cuobjdump -elf"] is None
