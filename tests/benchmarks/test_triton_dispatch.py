"""A smoke run of the benchmark of Triton's dispatch on the null driver."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("gcc", "g++", "triton", "torch")


def test_every_contender_is_measured(benchmarks, build_cache, tmp_path):
    import torch

    if torch.version.cuda is not None:
        pytest.skip("needs torch's CPU build: another asks the driver that does nothing")
    done = subprocess.run(
        [
            sys.executable,
            benchmarks / "triton_dispatch.py",
            "--host-only",
            "--quick",
            "--output",
            tmp_path,
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(build_cache)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "triton_dispatch_host.json").read_text())
    assert result["missing"] == []
    measured = {(one["contender"], one["case"]) for one in result["results"]}
    assert {("native[grid]", "0"), ("native[grid]", "5"), ("KernelSet[grid]", "5")} <= measured
    assert {("C loop", "5"), ("Triton jit[grid]", "5"), ("native, autotuned", "5")} <= measured
