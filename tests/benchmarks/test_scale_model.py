"""The model of many machines: what must hold of any, and the tables of docs/scaling.md."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCALING = Path(__file__).parents[2] / "docs" / "scaling.md"


@pytest.fixture(scope="module")
def model(benchmarks):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(benchmarks)
        import scale_model

        yield scale_model


@pytest.fixture
def steady(model):
    """Requests that all take the same time, one in a message."""
    return model.Facts(compile_s=1.0, spread=0.0, coordinator_s=0.1, together_s=0.0)


def test_a_farm_that_can_be_done_by_hand(model, steady):
    one = model.farm(1, 10, steady)
    assert one["seconds"] == pytest.approx(10 * 1.1)
    assert one["program_is_busy"] == pytest.approx(1 / 11)
    ten = model.farm(10, 100, steady)
    # Ten workers need just what the program can hand out, and wait for it at times.
    assert 10.0 <= ten["seconds"] <= 16.0
    assert model.farm(1000, 1000, steady)["requests_per_s"] < 10.01, "the program is the limit"
    together = dataclasses.replace(steady, compile_s=0.01, together_s=0.1, together=4)
    single = dataclasses.replace(together, together_s=0.0)
    ratio = model.farm(4, 1000, single)["seconds"] / model.farm(4, 1000, together)["seconds"]
    assert 3.0 < ratio <= 4.0


def test_more_workers_are_never_slower(model):
    facts = model.Facts(spread=0.0)
    times = [model.farm(workers, 2000, facts)["seconds"] for workers in (1, 2, 4, 8, 64, 512)]
    assert times == sorted(times, reverse=True)
    assert all(model.farm(n, 500, facts)["of_perfect"] <= 1.0 + 1e-9 for n in (1, 3, 50))


def test_a_storm_asks_for_each_key_once_a_machine(model):
    facts = model.Facts()
    for machines, processes in ((1, 1), (3, 8), (50, 4)):
        full = model.storm(machines, processes, 20, facts, full=True)
        assert full["reads"] == 20 * machines
        assert full["compiled"] == full["writes"] == full["gave_up"] == 0
        assert full["reads_per_s"] <= facts.reads_per_s
    alone = model.storm(1, 8, 20, facts, full=False)
    assert (alone["compiled"], alone["writes"]) == (20, 20)
    many = model.storm(50, 4, 20, facts, full=False)
    assert 20 <= many["compiled"] <= 20 * 50
    at_once = dataclasses.replace(facts, compile_s=1000.0, spread_of_starts_s=0.0)
    assert model.storm(5, 20, 20, at_once, full=False)["compiled"] == 20 * 5, "nobody is first"


def test_a_server_that_is_too_slow_is_given_up(model):
    slow = model.Facts(reads_per_s=1.0, timeout_s=0.5)
    found = model.storm(10, 2, 20, slow, full=True)
    assert found["gave_up"] > 0 < found["compiled"]
    assert found["reads"] < 20 * 10, "who gave up asks no more"


def numbers(line):
    return [float(one.replace(",", "")) for one in re.findall(r"(?<= )[0-9][0-9,.]*(?= )", line)]


@pytest.mark.slow
def test_the_page_has_what_the_model_says(benchmarks, tmp_path):
    out = tmp_path / "model.json"
    command = [sys.executable, str(benchmarks / "scale_model.py"), "--json", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    found = json.loads(out.read_text())
    text = SCALING.read_text().partition("### Model of 10,000 workers")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    quick, slow = found["farm of kernels of 0.1 s"], found["farm of kernels of 30 s"]
    full = found["storm, the cache is full"]
    empty = found["storm, the cache is empty"]
    empty_slow = found["storm, the cache is empty, kernels of 30 s"]
    per_second = [line for line in rows if line.startswith("| requests a second")]
    expected = [
        (per_second[0], [one["requests_per_s"] for one in quick]),
        (per_second[1], [one["requests_per_s"] for one in slow]),
        (row(rows, "share of the workers"), [100 * one["of_perfect"] for one in quick]),
        (row(rows, "the program is busy"), [100 * one["program_is_busy"] for one in slow]),
        (row(rows, "the cache is full: seconds"), [one["seconds"] for one in full]),
        (row(rows, "reads a second"), [one["reads_per_s"] for one in full]),
        (row(rows, "the cache is empty, 0.1 s"), [one["compiled_per_key"] for one in empty]),
        (row(rows, "the cache is empty, 30 s"), [one["compiled_per_key"] for one in empty_slow]),
    ]
    for line, values in expected:
        said = numbers(" " + re.sub(r"[|%]", " ", line[2:].partition("|")[2]) + " ")
        assert said == pytest.approx(values, rel=0.06, abs=0.6), line


def row(rows, start):
    (line,) = (one for one in rows if one.startswith(f"| {start}"))
    return line
