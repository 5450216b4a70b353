"""Libraries that are written in Triton run natively by ``install``, and are right."""

import os
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs("triton", "torch"), pytest.mark.slow]

PROGRAM = Path(__file__).parents[1] / "shared" / "libraries_program.py"


@pytest.mark.parametrize(
    "library",
    [
        pytest.param("liger", marks=pytest.mark.needs("liger_kernel")),
        pytest.param("fla", marks=pytest.mark.needs("fla")),
    ],
)
def test_operators_forward_and_backward(run_after_torch, library):
    """Every launch is native, and about half of the choices are compared with what Python says."""
    environment = {**os.environ, "CULAUNCH_DRIVER": "emulator", "CULAUNCH_TRITON_CHECK": "1"}
    done = run_after_torch([PROGRAM, library], env=environment)
    assert done.returncode == 0, done.stderr
    assert "kernels, " in done.stdout


@pytest.mark.parametrize(
    ("packages", "count"),
    [
        pytest.param(["liger_kernel.ops"], 10, marks=pytest.mark.needs("liger_kernel")),
        pytest.param(["fla.ops", "fla.modules"], 300, marks=pytest.mark.needs("fla")),
    ],
    ids=["liger", "fla"],
)
def test_all_of_their_decorators_can_be_saved(run_after_torch, packages, count):
    """Every heuristic is an expression, and every hook of a configuration is data."""
    done = run_after_torch([PROGRAM.with_name("saved_libraries_program.py"), *packages])
    assert done.returncode == 0, done.stderr
    *refused, last = done.stdout.splitlines()
    assert refused == []
    assert int(last.split()[0]) > count
