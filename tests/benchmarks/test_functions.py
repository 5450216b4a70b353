"""A smoke run of the benchmark of functions on the null driver, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("gcc", "g++", "torch", "triton")


def test_every_row_is_measured_or_named(
    benchmarks: Path, build_cache: Path, tmp_path: Path, unoptimized: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, benchmarks / "functions.py", "--host-only", "--quick",
         "--json", tmp_path / "functions.json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **unoptimized, "XDG_CACHE_HOME": str(build_cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "functions.json").read_text())
    measured, missing = set(report["medians_ns"]), set(report["missing"])
    assert len(measured | missing) == 16
    assert not measured & missing
    assert {"C loop", "launcher alone", "function of one launch, output given",
            "function that checks and allocates", "function of ten launches",
            "first call of a kind", "transformer block as one function",
            "the same block through Triton's jit[grid]"} <= measured  # fmt: skip
    assert len(report["bars"]) == 8
    assert all(bar["name"] in done.stdout for bar in report["bars"])
