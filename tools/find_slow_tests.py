"""Write tests/slow_tests.txt: the tests that ``make check`` leaves out, by measured time.

    python tools/find_slow_tests.py

Run it in the environment and with the variables of ``make check``, on a quiet machine and twice:
the first run fills the caches. It runs the tests that are not marked as slow, one after another. A
test function whose cases together take longer than BUDGET is left out. If it has many cases, only
every n-th one runs.
"""

from __future__ import annotations

import argparse
import collections
import math
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "slow_tests.txt"
HEAD = "# tools/find_slow_tests.py writes this file. With a number, every n-th case is run.\n"
BUDGET = 0.25  # seconds
QUICK = "not slow and not gpu and not multi_gpu"


def main() -> int:
    """Run the tests and write the table."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-m", QUICK]
        command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
        command += [f"--junitxml={report}", str(ROOT / "tests")]
        code = subprocess.run(command, cwd=folder, env=os.environ, check=False).returncode
        times = times_of(report)
    TABLE.write_text(HEAD + "".join(f"{line}\n" for line in lines(times)))
    return code


def times_of(report: Path) -> dict[str, list[float]]:
    """Return the times of the cases of each test function."""
    times = collections.defaultdict(list)
    for case in ET.parse(report).getroot().iter("testcase"):
        file = case.attrib["classname"].replace(".", "/") + ".py"
        function = case.attrib["name"].partition("[")[0]
        times[f"{file}::{function}"].append(float(case.attrib["time"]))
    return times


def lines(times: dict[str, list[float]]) -> list[str]:
    """Return the table's lines of the functions that take too long."""
    found = []
    for name, cases in sorted(times.items()):
        every = math.ceil(sum(cases) / BUDGET)
        if every > 1:
            found.append(f"{name} {every}" if every * 2 <= len(cases) else name)
    return found


if __name__ == "__main__":
    sys.exit(main())
