"""The benchmark of libraries that are written in Triton: a smoke run, and made-up results."""

import json
import subprocess
import sys

import pytest
from runs import run_to_the_end


@pytest.mark.needs("triton", "torch", "liger_kernel", "fla")
def test_launches_are_recorded_and_made_in_either_way(benchmarks, tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            benchmarks / "triton_libraries.py",
            "--smoke",
            "--quick",
            "--workers",
            "1",
            "--output",
            tmp_path,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "triton_libraries.json").read_text())
    assert found["missing"] == []
    assert {one["said"] for one in found["equal"].values()} == {"ran"}
    assert {one["triton"] for one in found["equal"].values()} == {0}
    kernels = {one["kernel"]: one for one in found["launches"]}
    assert kernels["l2norm_fwd_kernel"]["decorators"] == ["CachedAutotuner"]
    assert {"_swiglu_forward_kernel", "_softmax_single_block_backward_kernel"} <= kernels.keys()
    assert all(one["ns"]["native"] and one["ns"]["Triton"] for one in found["launches"])
    assert found["forwards_ns"].keys() == {"liger.swiglu", "fla.l2norm", "liger.softmax"}
    keys = {"Triton", "native", "native / Triton", "no launch", "launches"}
    assert all(ns.keys() == keys for ns in found["forwards_ns"].values())
    assert [ns["launches"] for ns in found["forwards_ns"].values()] == [1, 1, 1]


@pytest.mark.needs("triton", "torch")
def test_tritons_way_is_tritons_own(benchmarks):
    """All changes of `install` are undone for it, in every class."""
    code = f"""
        import sys
        sys.path.insert(0, {str(benchmarks)!r})
        from libraries.launches import Ways
        from triton.runtime import autotuner, jit
        leaves = (jit.JITFunction, autotuner.Autotuner, autotuner.Heuristics)
        def now():
            kinds = {{kind for one in leaves for kind in one.__mro__}}
            return {{kind: dict(vars(kind)) for kind in kinds}}
        before = now()
        ways = Ways()
        native = now()
        assert native != before
        for way in ("no launch", "native", "Triton", "no launch", "Triton"):
            ways.use(way)
        assert now() == before
        ways.use("native")
        assert now() == native
        print("done")
    """
    run_to_the_end(code)


@pytest.fixture
def results(benchmarks, monkeypatch):
    monkeypatch.syspath_prepend(str(benchmarks))
    from libraries.results import Results

    made = Results("gpu")
    rows = [
        {"operator": "a", "kernel": name, "decorators": [], "arguments": 3}
        for name in ("one", "two", "three")
    ]
    made.take({"kind": "recorded", "launches": rows, "took": 1.0})
    ns = {"0": {"Triton": 70.0, "native": 10.0}, "1": {"Triton": 40.0, "native": 10.0}}
    made.take({"kind": "replayed", "ns": ns})
    made.take({"kind": "looped", "ns": {"0": {"C loop": 8.0, "native": 10.0}}})
    made.take({"kind": "equal", "name": "fla.x", "said": "equal", "native": 3, "triton": 0})
    made.take({"kind": "equal", "name": "fla.y", "said": "1 of 2 differ: [0]", "triton": 1})
    made.take({"kind": "equal", "name": "fla.z", "said": "failed: it does"})
    kda = {"Triton": 100.0, "native": 45.0, "no launch": 40.0, "launches": 2}
    attention = {"Triton": 100.0, "native": 26.0, "native / Triton": 0.25}
    ns = {"fla.chunk_kda": kda, "fla.parallel_attn": attention}
    made.take({"kind": "forwards", "ns": ns})
    made.take({"kind": "missing", "why": "three: no"})
    return made


def test_bars_are_those_of_what_was_measured(results):
    bars = {bar.name: (bar.measured, bar.met) for bar in results.bars()}
    assert bars["operators with different bits"] == (1, False)
    assert bars["launches of these operators through Triton"] == (1, False)
    assert bars["all launches, median, native / Triton"] == ((10 / 70 + 0.25) / 2, False)
    assert bars["all launches, the slowest, native / Triton"] == (0.25, False)
    assert bars["plain jit, the slowest, native / C loop"] == (1.25, True)
    assert bars["forward of fla.chunk_kda, host, native / Triton"] == (0.45, False)
    assert bars["forward of fla.chunk_kda, only the launches, native / Triton"] == (5 / 60, True)
    assert bars["forward of fla.parallel_attn, host, native / Triton"] == (0.25, True)
    assert bars["forward of fla.parallel_attn, only the launches, native / Triton"] == (None, None)
    assert bars["forward of fla.fused_recurrent_gla, host, native / Triton"] == (None, None)
    notes = {bar.note for bar in results.bars()}
    assert notes == {"", "0.40 without launches, 0.56 with 2 by a loop in C"}


def test_a_table_of_half_a_run(results):
    from libraries.table import lines

    text = "\n".join(lines(results))
    assert "1 of 2 differ: [0]" in text
    assert "missing: three: no" in text
    assert "NOT MET; 0.40 without launches, 0.56 with 2" in text
    assert "2 launches" not in text


@pytest.mark.needs("matplotlib")
def test_a_chart_of_half_a_run(results, tmp_path):
    from libraries.table import draw

    draw(results, tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text().count("<use") >= 4


def test_what_a_worker_was_writing_when_it_was_ended(benchmarks, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(benchmarks))
    import triton_libraries

    path = tmp_path / "0.jsonl"
    assert triton_libraries._lines(path) == []
    path.write_text('{"kind": "equal"}\n{"kind": "rep')
    assert triton_libraries._lines(path) == [{"kind": "equal"}]


def test_each_moment_belongs_to_the_innermost_span(benchmarks, monkeypatch):
    monkeypatch.syspath_prepend(str(benchmarks))
    from libraries import spans

    now = [0.0]
    monkeypatch.setattr(spans.time, "perf_counter", lambda: now[0])
    made = spans.Spans()

    def inner(seconds):
        now[0] += seconds

    inner = made.of("inner", inner)

    def outer():
        now[0] += 1
        inner(2)
        now[0] += 4
        inner(8)
        made._collect("start", None)
        now[0] += 16
        made._collect("stop", None)
        raise ValueError("it ends")

    with pytest.raises(ValueError, match="it ends"):
        made.of("outer", outer)()
    assert made.seconds == {"inner": 10, "outer": 5, spans.COLLECTOR: 16}


@pytest.mark.needs("triton", "torch")
def test_what_is_measured_of_first_calls_is_there(benchmarks, monkeypatch):
    """By private names, of Triton and of culaunch: they are looked up, and put back."""
    monkeypatch.syspath_prepend(str(benchmarks))
    from libraries.spans import REST, Spans
    from triton.runtime.jit import JITFunction

    before = JITFunction._do_compile
    made = Spans()
    with made.measured():
        assert JITFunction._do_compile is not before
    assert JITFunction._do_compile is before
    assert made.seconds.keys() >= {REST}
