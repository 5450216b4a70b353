"""Compare the emulator with compute-sanitizer on 60 kernels with one bug each.

    python benchmarks/planted_bugs.py [--parts emulator,sanitizer] [--json FILE] [--only NAME ...]

The table is in ``planted_bugs/table.py``. Each kernel runs on the emulator, with the checks that
find its bug and with those that are on by default. So does its correction, with every check. With a
GPU, each also runs there, alone and under the four tools of compute-sanitizer.

``--json`` updates a file: the columns of parts that do not run, and bugs that are not named, stay
as they are. So the parts may run on different machines.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

# Before the emulator starts: bulk copies need this architecture.
os.environ.setdefault("CULAUNCH_EMULATOR_ARCH", "sm_90")

from planted_bugs.emulated import emulated, is_right
from planted_bugs.launches import launch
from planted_bugs.sanitized import ERROR, TOOLS, sanitized
from planted_bugs.table import BUGS, Bug

import culaunch as cl
from culaunch import testing


def main() -> int:
    """Run the parts, and show and save what they found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", default="emulator,sanitizer", help="emulator, sanitizer")
    parser.add_argument("--json", type=Path, metavar="FILE", help="update a file of results")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="bugs, or files of them")
    parser.add_argument("--launch", nargs="+", metavar="NAME", help="only launch bugs on the GPU")
    parser.add_argument("--fixed", action="store_true", help="with --launch: the corrections")
    options = parser.parse_args()
    if options.launch:
        return _launch([bug for bug in BUGS if bug.name in options.launch], fixed=options.fixed)
    only = options.only
    bugs = [bug for bug in BUGS if not only or bug.name in only or bug.source in only]
    found: dict[str, dict[str, Any]] = {bug.name: _declared(bug) for bug in bugs}
    parts = options.parts.split(",")
    started = time.perf_counter()
    if "emulator" in parts:
        for bug in bugs:
            found[bug.name]["emulator"] = emulated(bug)
        _note("the emulator", started)
    if "sanitizer" in parts and testing.has_gpu():
        if shutil.which("compute-sanitizer") is None:
            parser.error(
                "compute-sanitizer is not in PATH: add its folder, or use --parts emulator"
            )
        started = time.perf_counter()
        with testing.use_driver("cuda"):
            for name, reports in sanitized(bugs).items():
                found[name]["sanitizer"] = reports
        _note("compute-sanitizer", started)
    for bug in bugs:
        print(_line(bug, found[bug.name]))
    if options.json:
        before = json.loads(options.json.read_text()) if options.json.exists() else {}
        merged = {bug.name: before.get(bug.name, {}) for bug in BUGS}
        for name, row in found.items():
            merged[name] = {**merged[name], **row}
        options.json.write_text(json.dumps({n: r for n, r in merged.items() if r}, indent=1) + "\n")
    return 0


def _declared(bug: Bug) -> dict[str, Any]:
    names = ("source", "kind", "place", "profiled", "missed")
    return {name: getattr(bug, name) for name in names}


def _launch(bugs: list[Bug], *, fixed: bool) -> int:
    with testing.use_driver("cuda"):
        try:
            for bug in bugs:
                launch(bug, fixed=fixed)
        except cl.DriverError as error:
            print(f"{ERROR}{error.name}", flush=True)
            return 1
    return 0


def _line(bug: Bug, row: dict[str, Any]) -> str:
    marks = []
    if "emulator" in row:
        checked = row["emulator"]["checked"]
        marks.append(f"emulator {_mark(checked is not None, is_right(bug, checked))}")
    if "sanitizer" in row:
        reports = row["sanitizer"]
        marks += [f"{t} {_mark(reports[t]['words'], reports[t]['is_right'])}" for t in TOOLS]
    return f"{bug.name:28}" + "  ".join(marks)


def _mark(found: object, right: bool) -> str:
    return "line" if right else "found" if found else "-"


def _note(what: str, started: float) -> None:
    print(f"{what}: {time.perf_counter() - started:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
