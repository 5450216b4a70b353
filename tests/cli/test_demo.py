"""``culaunch demo`` goes as far as the machine allows, and its last line says how far."""

import os
import subprocess
import sys

import pytest


def run(*options, driver=None):
    environment = {**os.environ, "COLUMNS": "100"}
    environment.pop("CULAUNCH_DRIVER", None)
    if driver is not None:
        environment["CULAUNCH_DRIVER"] = driver
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "culaunch", "demo", *options],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert "Traceback" not in result.stderr
    return result


def check_steps(lines):
    """Every step but the launch is the same everywhere."""
    steps = [line.split()[0] for line in lines]
    assert steps[:2] == ["culaunch", "driver"]
    assert "compile" in steps
    shown = [line.partition(":")[0].split(None, 1)[1] for line in lines if line[:7] == "inspect"]
    assert shown == [
        "add(float*, const float*, const float*, int)",
        "scale<float>(float*, const float*, float, int)",
    ]


def check_mistakes(lines):
    """A wrong argument is refused, and the emulator says where a fault is."""
    (refused,) = [line for line in lines if line.startswith("refused")]
    assert "argument 3 of add, int (4 bytes), must be an int" in refused
    (fault,) = [line for line in lines if line.startswith("fault")]
    assert fault == (
        "fault    (emulated) 4-byte read outside every allocation, 0 bytes after the end of an "
        "allocation of 4000 bytes, argument 0; block (3, 0, 0), thread (232, 0, 0); demo.cu, "
        "line 3: if (i < n) z[i] = x[i] + y[i];"
    )


@pytest.mark.gpu
def test_on_a_gpu():
    result = run()
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    check_steps(lines)
    assert lines[-1].startswith("Everything worked on the NVIDIA")
    assert sum("equal to NumPy's" in line for line in lines) == 2
    check_mistakes(lines)


@pytest.mark.slow
def test_without_a_gpu(has):
    """The emulated driver takes over, and the demo says that it did."""
    result = run("--size", "5000", driver="emulator" if has("gpu") else None)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    check_steps(lines)
    assert lines[-1] == "Everything worked, emulated: no GPU was used, and no times are shown."
    assert not any(line.startswith("cost") for line in lines)
    assert sum("equal to NumPy's" in line for line in lines) == 2
    check_mistakes(lines)


@pytest.mark.slow
def test_without_any_driver(has, tmp_path):
    """A driver that cannot be opened is no reason not to show the rest, and no success."""
    result = run("--size", "5000", driver=str(tmp_path / "libcuda.so"))
    assert result.returncode == 1, result.stderr
    lines = result.stdout.splitlines()
    check_steps(lines)
    assert sum(line.startswith("driver") for line in lines) == 1
    assert "cannot be loaded" in result.stdout
    assert lines[-1] == "No GPU on this machine: everything worked but the launch."


def test_a_size_that_makes_no_sense():
    result = run("--size", "0")
    assert result.returncode != 0
    assert "size" in result.stderr
