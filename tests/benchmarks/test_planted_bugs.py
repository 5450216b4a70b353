"""The table of planted bugs, and the reader of compute-sanitizer's output."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def planted(benchmarks: Path) -> Iterator[Callable[[str], Any]]:
    """Import a module of benchmarks/planted_bugs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(benchmarks)
        yield lambda name: importlib.import_module(f"planted_bugs.{name}")


def test_each_kernel_is_declared_once(planted: Callable[[str], Any]) -> None:
    table = planted("table")
    names = [bug.name for bug in table.BUGS]
    assert len(names) == len(set(names)) == 60
    sources = {path.stem: path.read_text() for path in table.FOLDER.glob("*.cu")}
    assert sorted(names) == sorted(
        line.removeprefix("KERNEL ").partition("(")[0]
        for text in sources.values()
        for line in text.splitlines()
        if line.startswith("KERNEL ")
    )
    for bug in table.BUGS:
        if not bug.header:
            file, _, line = bug.place.partition(":")
            assert file == f"{bug.source}.cu"
            assert "// here" in sources[bug.source].splitlines()[int(line) - 1]


MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at past_the_end+0x80 in bounds.cu:7
=========     by thread (50,0,0) in block (0,0,0)
=========     Access to 0x7f00000000c8 is out of bounds
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch in tool.cu:12
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure"
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at no_barrier+0x90 in shared_races.cu:11
=========     and Read access at no_barrier+0xd0 in shared_races.cu:13 [4096 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
NOTHING = """\
========= COMPUTE-SANITIZER
========= ERROR SUMMARY: 0 errors
"""


def test_the_first_report_of_a_tool_is_read(planted: Callable[[str], Any]) -> None:
    read = planted("sanitized").read_report
    report = read(MEMCHECK, "bounds.cu:7")
    assert report == {
        "words": "Invalid __global__ write of size 4 bytes",
        "place": "bounds.cu:7",
        "is_right": True,
    }
    assert not read(MEMCHECK, "bounds.cu:8")["is_right"]
    assert not read(MEMCHECK, "tool.cu:12")["is_right"]  # of the host


def test_a_race_has_two_places(planted: Callable[[str], Any]) -> None:
    read = planted("sanitized").read_report
    assert read(RACECHECK, "shared_races.cu:11")["is_right"]
    assert read(RACECHECK, "shared_races.cu:13")["is_right"]
    assert read(RACECHECK, "shared_races.cu:13")["place"] == "shared_races.cu:11"
    assert read(RACECHECK, "sync.h")["is_right"] is False


def test_no_report_is_none(planted: Callable[[str], Any]) -> None:
    read = planted("sanitized").read_report
    nothing = {"words": "", "place": "", "is_right": False}
    assert read(NOTHING, "bounds.cu:7") == nothing
    assert read("", "bounds.cu:7") == nothing


def test_a_run_of_one_part_keeps_the_columns_of_the_other(benchmarks: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    out.write_text(json.dumps({"double_free": {"sanitizer": {"memcheck": 1}}, "gone": {}}))
    command = [sys.executable, benchmarks / "planted_bugs.py", "--parts", "emulator"]
    subprocess.run(
        [*command, "--only", "double_free", "--json", out], check=True, capture_output=True
    )
    rows = json.loads(out.read_text())
    assert set(rows) == {"double_free"}
    assert rows["double_free"]["sanitizer"] == {"memcheck": 1}
    assert rows["double_free"]["emulator"]["checked"]["kind"] == "invalid-free"
