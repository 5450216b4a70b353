"""Measure what the C++ header's launch costs over ``cuLaunchKernelEx`` called by hand.

    python benchmarks/cpp_launch.py --json result.json

The bar: ``Kernel::Launch`` within 2 % of the call by hand, medians of one run on a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import culaunch as cl

HERE = Path(__file__).parent
BAR = 1.02


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of a launch from C++.")
    parser.add_argument("--rounds", type=int, default=2000, help="bursts of 200 launches")
    parser.add_argument("--json", type=Path, help="write the medians, in nanoseconds, here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(build(Path(folder)), options.rounds)
    if options.json:
        options.json.write_text(json.dumps(found))
    for name, nanoseconds in found.items():
        twin = "default stream by hand" if name.startswith("default") else "by hand"
        print(f"{name:23} {nanoseconds:8.1f} ns  {nanoseconds / found[twin]:.3f} x")
    ratio = found["Launch"] / found["by hand"]
    print(f"Launch / by hand <= {BAR} x: {'met' if ratio <= BAR else 'NOT MET'} ({ratio:.3f} x)")
    return 0


def build(folder: Path) -> Path:
    """Compile the program with the C++ compiler found."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        sys.exit("no C++ compiler was found: install g++ or clang++")
    cuda = subprocess.run(
        [sys.executable, str(HERE.parent / "tools" / "find_cuda_headers.py")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    program = folder / "launch_cost"
    includes = ["-I", str(cl.include_dir()), "-isystem", cuda]
    source = str(HERE / "cpp_launch" / "launch_cost.cpp")
    subprocess.run(
        [compiler, "-std=c++17", "-O2", *includes, source, "-o", str(program), "-ldl", "-pthread"],
        check=True,
    )
    return program


def measure(program: Path, rounds: int) -> dict[str, float]:
    """Run it on the driver that ``CULAUNCH_DRIVER`` names."""
    done = subprocess.run(
        [str(program), str(rounds)],
        check=True,
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "CULAUNCH_DRIVER_TABLE"},
    )
    pattern = re.compile(r"^(.+) ([\d.]+)$", re.MULTILINE)
    return {name: float(nanoseconds) for name, nanoseconds in pattern.findall(done.stdout)}


if __name__ == "__main__":
    sys.exit(main())
