"""Reductions under the tests of the array API standard: special cases, types, shapes, NaN."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools" / "third_party"
FILES = ("statistical_functions", "searching_functions", "utility_functions", "linalg",
         "special_cases")  # fmt: skip
NAMES = ("test_sum", "test_prod", "test_max", "test_min", "test_mean", "test_var", "test_std",
         "test_any", "test_all", "test_argmax", "test_argmin", "test_vector_norm",
         "test_empty_arrays", "test_nan_propagation")  # fmt: skip


@pytest.mark.slow
@pytest.mark.needs("CULAUNCH_ARRAY_API_TESTS", "ndindex", "pytest_jsonreport")
def test_its_tests_of_reductions_pass():
    folder = Path(os.environ["CULAUNCH_ARRAY_API_TESTS"]).resolve()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore"]
    command += ["--disable-deadline", "--derandomize", "--max-examples", "50"]
    command += [f"array_api_tests/test_{name}.py" for name in FILES]
    command += ["-k", f"({' or '.join(NAMES)}) and not cumulative"]
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "array_api_reductions",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "CULAUNCH_DRIVER": "emulator",
        "PYTHONPATH": f"{TOOLS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 passed" in done.stdout
