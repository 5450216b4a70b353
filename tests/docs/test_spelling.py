"""Words are spelled right: in pages, in messages, in comments."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = (
    "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "benchmarks", "cmake", "csrc", "docs",
    "examples", "include", "src", "tests/docs",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.needs("codespell_lib")
def test_words_are_spelled_right():
    done = subprocess.run(
        [sys.executable, "-m", "codespell_lib", "--toml", "pyproject.toml", *READ],
        check=False, capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
