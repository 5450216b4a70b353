"""The benchmark's judgement and its plot; on a GPU, its smallest run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "elementwise.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("elementwise_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CUPY = {"cupy fuse": 120.0}


def row(what, size, **us):
    return {"what": what, "dtype": "float32", "size": size, "bytes": 8 * size, "us": us}


def results(ours=100.0, call=1.0):
    return {
        "machine": {"gpu": "a GPU"},
        "rows": [
            row("gelu contiguous", 1 << 20, culaunch=5.0, copy=1.0),
            row("gelu contiguous", 1 << 26, culaunch=ours, copy=95.0, **CUPY),
            row("gelu transposed", 1 << 26, **{"culaunch": ours, "torch.compile": 90.0}),
        ],
        "overhead": {"bare launch": 1.0, "culaunch out=": call},
    }


def test_every_bar_is_judged(bench):
    assert bench.judge(results()) == []
    short = bench.judge(results(ours=130.0, call=2.0))
    assert [line.split(": ")[-1] for line in short] == [
        "0.731 of the copy's bandwidth", "1.08 x the time of cupy fuse",
        "1.44 x the time of torch.compile",
        "a call with out= takes 2.00 x the time of a bare launch",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_the_plot(tmp_path):
    made = results()
    other = [{**r, "dtype": "bfloat16"} for r in made["rows"][:2]]
    made["rows"] += other
    (tmp_path / "results.json").write_text(json.dumps(made))
    figure = tmp_path / "figure.svg"
    command = [sys.executable, SCRIPT, "--plot", tmp_path / "results.json", figure]
    subprocess.run(command, check=True, capture_output=True)
    assert "a GPU" in figure.read_text() or figure.stat().st_size > 5000


@pytest.mark.gpu
@pytest.mark.needs("torch")
def test_a_call_is_measured(bench):
    small = bench.Bench(quick=True)
    small.contiguous("gelu", "float32", 1 << 16)
    (only,) = small.rows
    assert set(only["us"]) >= {"culaunch", "torch", "copy"}
    assert all(us > 0 for us in only["us"].values())
