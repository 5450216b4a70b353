"""A smoke run of the benchmark of graphs on the null driver, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("gcc", "g++", "torch")


def test_every_row_is_measured_or_named(
    benchmarks: Path, build_cache: Path, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, benchmarks / "graphs.py", "--host-only", "--quick",
         "--json", tmp_path / "graphs.json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(build_cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "graphs.json").read_text())
    assert set(report["rows"]) == {
        "one launch", "one launch, then wait", "ten launches", "ten launches, then wait",
        "explicit graph of twenty", "beside torch", "grids that change", "streams", "threads",
    }  # fmt: skip
    assert {line.split(":")[0] for line in report["missing"]} == {"kernels", "durations"}
    for contenders in report["rows"].values():
        assert all(nanoseconds > 0 for pair in contenders.values() for nanoseconds in pair)
