"""A smoke run of the benchmark of libraries that are written in Triton, on the emulator."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.needs("triton", "torch", "liger_kernel", "fla")


def test_launches_are_recorded_and_made_in_either_way(benchmarks, tmp_path):
    done = subprocess.run(
        [sys.executable, benchmarks / "triton_libraries.py", "--smoke", "--output", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "triton_libraries.json").read_text())
    assert found["missing"] == []
    assert set(found["equal"].values()) == {"ran"}
    kernels = {one["kernel"]: one for one in found["launches"]}
    assert kernels["l2norm_fwd_kernel"]["decorators"] == ["CachedAutotuner"]
    assert {"_swiglu_forward_kernel", "_softmax_single_block_backward_kernel"} <= kernels.keys()
    assert all(one["ns"]["native"] and one["ns"]["Triton"] for one in found["launches"])
