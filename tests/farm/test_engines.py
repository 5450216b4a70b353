"""``compile_many`` on real engines, each with real processes of its own on this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(__file__).with_name("program.py"))


def run(engine, tmp_path, *before):
    command = [*before, PROGRAM, engine, str(tmp_path / "cache"), str(tmp_path / "engine")]
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=240, env=environment
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert lines, done.stdout + done.stderr
    return json.loads(lines[0].removeprefix("ANSWER "))


def check(answer, numbers):
    good = [number for number in numbers if number != 7]
    assert answer["names"] == [f"k{number}(int*)" for number in good]
    assert answer["same"]
    kind, message, log = answer["error"]
    assert kind == "CompileError"
    assert message.startswith(f"request {list(numbers).index(7)} of compile_many (a text): ")
    assert "oops" in message
    assert 'identifier "oops" is undefined' in log
    assert answer["entries"] == len(good), "the workers used the cache that they were given"
    assert answer["progress"] == [len(numbers), len(numbers), 1]


@pytest.mark.slow
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_processes(start, tmp_path):
    check(run(start, tmp_path, sys.executable), range(12))


@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_dask(tmp_path):
    check(run("dask", tmp_path, sys.executable), range(12))


@pytest.mark.slow
@pytest.mark.needs("ray")
def test_ray(tmp_path):
    check(run("ray", tmp_path, sys.executable), range(12))


@pytest.mark.slow
@pytest.mark.needs("mpi4py", "mpiexec")
def test_mpi(tmp_path):
    check(
        run("mpi", tmp_path, "mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures"),
        range(12),
    )


@pytest.mark.slow
@pytest.mark.needs("submitit")
def test_submitit(tmp_path):
    check(run("submitit", tmp_path, sys.executable), range(6, 9))
