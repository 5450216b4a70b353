"""The tool that runs test suites of others both ways, on a suite of three lines."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "third_party" / "compare_suites.py"
SUITE = """
import os
import pytest


def test_same():
    pass


def test_worse():
    assert "CULAUNCH_TRITON_CHECK" not in os.environ


def test_better():
    assert "CULAUNCH_TRITON_CHECK" in os.environ
"""


@pytest.mark.needs("triton", "torch")
@pytest.mark.slow
def test_a_test_that_passes_by_triton_alone_is_named(tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "test_it.py").write_text(SUITE)
    (tmp_path / "some" / "test_broken.py").write_text("import nothing_has_this_name")
    suites = {"some": {"tests": "some", "files": {"test_it.py": 1, "test_broken.py": 1}}}
    (tmp_path / "suites.json").write_text(json.dumps(suites))
    output = tmp_path / "output"
    done = subprocess.run(
        [sys.executable, TOOL, tmp_path, "--output", output, "--seconds", "90", "--jobs", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 tests both ways, 2 passed by Triton" in done.stdout
    assert "passed by Triton alone: 1, natively alone: 1" in done.stdout
    assert "WORSE some.test_it.py.jsonl:" in done.stdout
    assert "test_broken.py triton: nothing ran" in done.stdout
    # What was being written when a process was ended is no outcome.
    with (output / "some.native.test_it.py.jsonl").open("a") as file:
        file.write('{"id": "half')
    sys.path.insert(0, str(TOOL.parent))
    try:
        from compare_suites import compared
    finally:
        sys.path.remove(str(TOOL.parent))
    assert compared("some", output)[1] == 1
