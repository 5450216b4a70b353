"""A smoke run of the launch benchmark on the null driver, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.needs("gcc", "g++")


@pytest.fixture(scope="module")
def run(
    benchmarks: Path,
    build_cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
    unoptimized: dict[str, str],
) -> tuple[dict[str, Any], str]:
    target = tmp_path_factory.mktemp("out")
    script = benchmarks / "launch_overhead.py"
    done = subprocess.run(
        [sys.executable, script, "--host-only", "--quick", "--output", target],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **unoptimized, "XDG_CACHE_HOME": str(build_cache)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((target / "launch_overhead_host.json").read_text())
    return result, done.stdout


def test_every_contender_is_measured_or_named(
    run: tuple[dict[str, Any], str], overhead: Callable[[str], Any]
) -> None:
    result, text = run
    ours, tvm, peers, parts = map(overhead, ("ours", "tvm", "peers", "launch_parts"))
    shortcuts = overhead("shortcuts").NAMES
    contenders = {ours.C_LOOP, ours.C_LOOP_KERNEL, ours.LAUNCHER, ours.STREAM_GIVEN}
    contenders |= {ours.SUBSCRIPT, ours.DEVICE_ARRAYS, tvm.EMPTY, tvm.CUBIN_DRIVER}
    contenders |= {peers.CORE_RAW, peers.CORE_BUFFER, *parts.PARTS.values()}
    contenders |= {f"{ours.LAUNCHER}, {shortcuts[name]}" for name in ("numbers", "places", "torch")}
    measured = {entry["contender"] for entry in result["results"]}
    missing = {entry["contender"]: entry["reason"] for entry in result["missing"]}
    assert measured | set(missing) == contenders
    assert all(reason and reason in text for reason in missing.values())
    assert ours.C_LOOP in measured


def test_json_has_the_numbers(run: tuple[dict[str, Any], str]) -> None:
    result, _ = run
    assert (result["schema"], result["mode"], result["quick"]) == (1, "host-only", True)
    cases = {case["case"]: case for case in result["cases"]}
    for entry in result["results"]:
        assert entry["case"] in cases
        assert 0 <= entry["p10_ns"] <= entry["median_ns"]
        assert entry["bursts"] == result["method"]["rounds"]


def test_bars_are_printed_and_written(run: tuple[dict[str, Any], str]) -> None:
    result, text = run
    assert len(result["bars"]) == 4
    for bar in result["bars"]:
        assert bar["name"] in text
    assert text.splitlines()[-1].startswith("bars: ")
    for bar in result["bars"]:
        if bar["measured"] is None:
            assert bar["met"] is None
        else:
            assert bar["met"] is (bar["measured"] <= bar["limit"])


def test_machine_is_stated_and_no_host_named(run: tuple[dict[str, Any], str]) -> None:
    result, text = run
    machine = result["machine"]
    assert machine["device"] == "fake device 0 (sm_90)"
    assert machine["cpu"] in text
    assert os.uname().nodename not in json.dumps(machine).split()


@pytest.mark.needs("torch")
def test_culaunch_is_measured_with_torch(
    run: tuple[dict[str, Any], str], overhead: Callable[[str], Any]
) -> None:
    result, _ = run
    ours = overhead("ours")
    measured = {(entry["contender"], entry["case"]) for entry in result["results"]}
    cases = overhead("cases").QUICK_CASES
    wanted = {(name, c.key) for name in (ours.LAUNCHER, ours.SUBSCRIPT) for c in cases}
    assert wanted <= measured, result["missing"]
    assert {"tensor", "int", "float", "exchange", "gil"} <= set(result["costs_ns"])
    assert len(result["breakdown_ns"]) == 5


@pytest.mark.needs("matplotlib")
def test_chart_is_drawn(overhead: Callable[[str], Any], tmp_path: Path) -> None:
    timing, report = overhead("timing"), overhead("report")
    cases = overhead("cases").CASES
    names = [overhead("ours").LAUNCHER, overhead("ours").C_LOOP, "a peer"]
    trials = [timing.Trial(n, c.key, lambda count: 0, [100.0, 120.0]) for n in names for c in cases]
    machine = {"cpu": "a processor", "device": "a device"}
    drawn = report.Report(True, True, machine, timing.Plan(1, 1, 2), trials)
    written = overhead("chart").write_chart(drawn, tmp_path / "chart")
    assert [path.suffix for path in written] == [".png", ".svg"]
    assert written[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in written[1].read_bytes()


@pytest.mark.gpu
@pytest.mark.needs("torch", "cupy")
def test_every_way_of_culaunch_is_measured_on_a_gpu(
    benchmarks: Path, build_cache: Path, overhead: Callable[[str], Any], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, benchmarks / "launch_overhead.py", "--quick", "--output", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(build_cache)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "launch_overhead.json").read_text())
    assert result["mode"] == "gpu"
    measured = {entry["contender"] for entry in result["results"]}
    ours = overhead("ours")
    own = {ours.C_LOOP, ours.LAUNCHER, ours.STREAM_GIVEN, ours.SUBSCRIPT}
    assert own | {ours.DEVICE_ARRAYS, ours.CUPY_ARRAYS} <= measured, result["missing"]
    assert len(result["bars"]) == 7


def test_without_a_driver_it_says_what_to_do(
    benchmarks: Path, build_cache: Path, has: Callable[[str], bool]
) -> None:
    if has("gpu"):
        return  # there is one
    done = subprocess.run(
        [sys.executable, benchmarks / "launch_overhead.py", "--burst", "1", "--rounds", "1"],
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "XDG_CACHE_HOME": str(build_cache),
            "CUDA_VISIBLE_DEVICES": "",
        },
    )
    assert done.returncode == 1
    assert "cannot start: RuntimeError: opening libcuda.so.1 failed" in done.stderr
    assert "--host-only" in done.stderr
