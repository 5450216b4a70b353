"""A smoke run of the comparison of two wheels on the null driver: with itself."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import culaunch

pytestmark = pytest.mark.needs("gcc", "g++", "torch", "triton", "nvrtc")


def test_both_wheels_are_measured_by_turns(benchmarks, build_cache, tmp_path, unoptimized):
    import torch

    if torch.version.cuda is not None:
        pytest.skip("needs torch's CPU build: another asks the driver that does nothing")
    package = Path(culaunch.__file__).parent
    wheel = tmp_path / "any.name"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in package.rglob("*"):
            if path.suffix != ".pyc":
                archive.write(path, path.relative_to(package.parent))
    done = subprocess.run(
        [sys.executable, benchmarks / "compare_wheels.py", wheel, wheel, "--host-only", "--quick",
         "--pairs", "1", "--rounds", "2", "--json", tmp_path / "found.json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, **unoptimized, "XDG_CACHE_HOME": str(build_cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["missing"] == {}
    rows = {row["row"]: row for row in found["rows"]}
    assert {
        "C loop, 4",
        "culaunch launcher (torch), 4",
        "native[grid], 5",
        "elementwise add(x, y, out=z)",
    } <= rows.keys()
    assert all(len(row["ratios"]) == 1 for row in rows.values())
    assert "new / old" in done.stdout
