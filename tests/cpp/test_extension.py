"""The extension under a second compiler: what it builds with must not be known to one alone."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import culaunch as cl

CSRC = Path(__file__).parents[2] / "csrc"
SOURCES = sorted(CSRC.rglob("*.cpp"))
PYTHON = Path(sysconfig.get_path("include"))


@pytest.mark.skipif(not (PYTHON / "Python.h").exists(), reason="needs Python.h")
@pytest.mark.parametrize("part", range(4))
def test_it_compiles_with_clang_without_a_warning(clang, cuda_headers, part):
    own = ["-I", str(cl.include_dir()), "-I", str(CSRC)]
    system = ["-isystem", cuda_headers, "-isystem", str(PYTHON)]
    command = [clang, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *own, *system]
    if sys.version_info >= (3, 12):
        command.append("-DPy_LIMITED_API=0x030c0000")  # as the wheel
    done = subprocess.run(
        [*command, *map(str, SOURCES[part::4])], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_reads_what_the_limited_api_hides():
    for path in SOURCES:
        assert "->tp_" not in path.read_text(), path.name
