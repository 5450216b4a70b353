"""Measure the cost of the C++ header's launch above a direct ``cuLaunchKernelEx``.

    python benchmarks/cpp_launch.py --json result.json

On the driver of this machine's GPU if there is one, and on one that does nothing
(drivers/fake), where the cost of the header is all that there is. The bars are for
``Kernel::Launch``, on a stream of one's own and on the default stream, against the same call by
hand: medians of one run. The exit status says whether they are met. It takes 20 s.
"""

from __future__ import annotations

import argparse
import ctypes
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
BARS = {"GPU": 1.01, "stub": 1.5}


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of a launch from C++.")
    parser.add_argument("--rounds", type=int, default=2000, help="bursts of 200 launches")
    parser.add_argument("--json", type=Path, help="write the medians, in nanoseconds, to this file")
    options = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder) / "launch_cost", HERE / "cpp_launch" / "launch_cost.cpp")
        # One unit, whose headers are read once.
        lines = [f'#include "{path}"\n' for path in (HERE.parent / "drivers/fake").glob("*.cpp")]
        unit = Path(folder) / "stub.cpp"
        unit.write_text("".join(sorted(lines)))
        stub = compiled(Path(folder) / "libstub.so", unit)
        if has_gpu():
            found["GPU"] = measure(program, options.rounds, "cuda")
        found["stub"] = measure(program, options.rounds, str(stub))
    if options.json:
        options.json.write_text(json.dumps(found))
    are_met = [report(driver, rows) for driver, rows in found.items()]
    return 0 if all(are_met) else 1


def has_gpu() -> bool:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return not cuda.cuInit(0) and not cuda.cuDeviceGetCount(ctypes.byref(count)) and count.value > 0


def report(driver: str, rows: dict[str, float]) -> bool:
    """Print the rows of a driver; return whether its bar is met."""
    is_met = True
    for name, nanoseconds in rows.items():
        ratio = nanoseconds / rows[by_hand(name)]
        is_barred = name.endswith("Launch")
        is_met = is_met and (not is_barred or ratio <= BARS[driver])
        verdict = f"  <= {BARS[driver]}: {'met' if ratio <= BARS[driver] else 'NOT MET'}"
        print(f"{driver:4}  {name:23} {nanoseconds:8.1f} ns  {ratio:.3f} x{verdict * is_barred}")
    return is_met


def by_hand(name: str) -> str:
    """Return the row that a row is compared with."""
    return "default stream by hand" if name.startswith("default") else "by hand"


def compiled(output: Path, *sources: Path) -> Path:
    """Compile C++ with the compiler found."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        sys.exit("found no C++ compiler: install g++ or clang++")
    cuda = subprocess.run(
        [sys.executable, str(HERE.parent / "tools" / "find_cuda_headers.py")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    words = ["-std=c++17", "-O2", "-I", str(cl.cpp.include_dir()), "-isystem", cuda]
    if output.suffix == ".so":
        words += ["-shared", "-fPIC", "-DFAKE_DRIVER_LOG=0"]  # one that writes nothing down
    words += [*map(str, sources), "-o", str(output), "-ldl", "-pthread"]
    subprocess.run([compiler, *words], check=True)
    return output


def measure(program: Path, rounds: int, driver: str) -> dict[str, float]:
    """Run it on a driver: ``cuda``, or a library by its path."""
    environment = {**os.environ, "CULAUNCH_DRIVER": driver}
    environment.pop("CULAUNCH_DRIVER_TABLE", None)
    done = subprocess.run(
        [str(program), str(rounds)], check=True, capture_output=True, text=True, env=environment
    )
    pattern = re.compile(r"^(.+) ([\d.]+)$", re.MULTILINE)
    return {name: float(nanoseconds) for name, nanoseconds in pattern.findall(done.stdout)}


if __name__ == "__main__":
    sys.exit(main())
