"""The benchmark of reductions: its bars, the choice of cases, and its plot."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "benchmarks" / "reductions.py"
MEASURED = ROOT / "docs" / "benchmarks" / "reductions.json"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("reductions_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_bar_is_judged(bench):
    def row(what, size, **us):
        return {"what": what, "dtype": "float16", "size": size, "us": us}

    rows = [
        row("sum", 1 << 28, culaunch=100.0, copy=96.0),
        row("sum", 1 << 28, culaunch=100.0, copy=90.0),
        row("sum", 1 << 12, culaunch=100.0, copy=10.0),
        row("softmax", 128, **{"culaunch": 102.0, "torch.compile": 100.0}),
        row("softmax", 256, **{"culaunch": 110.0, "torch.compile": 100.0}),
        row("softmax", 512, torch=1.0),
    ]
    assert bench.judge({"rows": rows}) == [
        "sum float16 268435456: 0.900 of the copy's bandwidth",
        "softmax float16 256: 1.10 x the time of torch.compile",
        "softmax float16 512: no time",
    ]


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        ((), {"sum 128", "softmax 128", "softmax backward 128", "softmax backward 1280"}),
        (("softmax float32",), {"softmax 128"}),
        (("backward float32 128", "sum"), {"sum 128", "softmax backward 128"}),
    ],
)
def test_cases_are_chosen_by_whole_words(bench, only, wanted):
    chosen = object.__new__(bench.Bench)
    chosen.only = only
    cases = [("sum", 128), ("softmax", 128), ("softmax backward", 128), ("softmax backward", 1280)]
    found = {f"{what} {size}" for what, size in cases if chosen.is_wanted(what, "float32", size)}
    assert found == wanted


@pytest.mark.slow
@pytest.mark.needs("matplotlib")
def test_the_plot_in_the_documentation_shows_the_measurements(tmp_path):
    figure = tmp_path / "figure.svg"
    command = [sys.executable, SCRIPT, "--plot", MEASURED, figure]
    subprocess.run(command, check=True, capture_output=True)
    text = figure.read_text()
    assert "layer_norm backward bfloat16" in text
    # Lines, without the markers, which another version of matplotlib may draw in other ways.
    drawn = [line for line in text.splitlines() if line.startswith("L ")]
    shown = (ROOT / "docs" / "reductions_h200.svg").read_text().splitlines()
    assert drawn == [line for line in shown if line.startswith("L ")]
