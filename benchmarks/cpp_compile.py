"""Measure the time to compile one C++ file with one launch, with culaunch and with others.

    python benchmarks/cpp_compile.py [--rounds 3] [--compilers g++,clang++] [--json FILE]

It compiles each file of ``cpp_compile/`` in turn. The least processor time of the rounds counts,
because other work on the machine changes it little. ``.text`` is the code of the object file at
-O2. The exit status says whether the bars are met. culaunch.h must not be slower to compile than
TVM-FFI's launcher, and may have at most 25 KB of code. With TVM-FFI it may take at most 1.2 times
as long as TVM-FFI by itself. This takes a minute on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import culaunch as cl

HERE = Path(__file__).parent
THIN, HEADER_ONLY = "-DCULAUNCH_HEADER_ONLY=0", "-DCULAUNCH_HEADER_ONLY=1"
# Row to its file and options.
ROWS: dict[str, tuple[str, str]] = {
    "cuda.h alone": ("cuda_only.cpp", ""),
    "driver calls by hand": ("by_hand.cpp", ""),
    "TVM-FFI's launcher": ("tvm_ffi_launcher.cpp", ""),
    "culaunch.h": ("culaunch.cpp", THIN),
    "culaunch.h, header-only": ("culaunch.cpp", HEADER_ONLY),
    "TVM-FFI alone": ("tvm_ffi.cpp", ""),
    "culaunch over TVM-FFI": ("culaunch_over_tvm_ffi.cpp", THIN),
    "the same, header-only": ("culaunch_over_tvm_ffi.cpp", HEADER_ONLY),
    "culaunch/implementation.h, once": ("implementation.cpp", THIN),
}
# Row, the row that it is compared with, and how many times its seconds may be.
BARS = (
    ("culaunch.h", "TVM-FFI's launcher", 1.0),
    ("culaunch over TVM-FFI", "TVM-FFI alone", 1.2),
)
MOST_CODE = 25_000
LEVELS = ("-O0", "-O2")


def main() -> int:
    parser = argparse.ArgumentParser(description="The cost of compiling a file with one launch.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compilers", default="g++,clang++")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, dict[str, dict[str, float]]] = {}
    for compiler in filter(shutil.which, options.compilers.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            found[compiler] = measure(compiler, options.rounds, Path(folder))
    if not found:
        sys.exit(f"no compiler found on PATH: {options.compilers}")
    if options.json:
        options.json.write_text(json.dumps(found))
    are_met = [report(compiler, rows) for compiler, rows in found.items()]
    return 0 if all(are_met) else 1


def measure(compiler: str, rounds: int, folder: Path) -> dict[str, dict[str, float]]:
    """Return row to seconds at -O0 and -O2, and bytes of code at -O2."""
    rows: dict[str, dict[str, float]] = {row: {} for row in ROWS}
    words = [compiler, "-std=c++17", "-c", "-fPIC", "-o", str(folder / "one.o"), *includes()]
    for _ in range(rounds):
        # All rows in each round: what else the machine does then is shared by all.
        for level in LEVELS:
            for row, (file, option) in ROWS.items():
                command = [*words, level, *filter(None, [option])]
                seconds = seconds_of([*command, str(HERE / "cpp_compile" / file)])
                rows[row][level] = min(seconds, rows[row].get(level, seconds))
                if level == "-O2":
                    rows[row][".text"] = code_size(folder / "one.o")
    return rows


def includes() -> list[str]:
    """Return the options for the headers of culaunch, CUDA and TVM-FFI."""
    from tvm_ffi import libinfo

    cuda = subprocess.run(
        [sys.executable, str(HERE.parent / "tools" / "find_cuda_headers.py")],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    return [f"-I{cl.cpp.include_dir()}", "-isystem", cuda, "-isystem", libinfo.find_include_path()]


def seconds_of(command: list[str]) -> float:
    """Return the processor time of a compiler and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def code_size(path: Path) -> float:
    """Return the bytes of the sections of an object file that are code."""
    done = subprocess.run(
        ["readelf", "-SW", path], check=True, capture_output=True, text=True
    ).stdout
    # "[ 2] .text.hot PROGBITS address offset size entry-size flags ...": AX is code.
    lines = [line.partition("]")[2].split() for line in done.splitlines() if "PROGBITS" in line]
    return float(sum(int(words[4], 16) for words in lines if "X" in words[6]))


def report(compiler: str, rows: dict[str, dict[str, float]]) -> bool:
    """Print the rows of a compiler; return whether its bars are met."""
    print(f"{compiler:32} {'-O0':>7} {'-O2':>7} {'.text at -O2':>13}")
    for row, values in rows.items():
        times = " ".join(f"{values[level]:6.2f}s" for level in LEVELS)
        print(f"{row:32} {times} {values['.text'] / 1000:10.1f} KB")
    is_met = True
    for row, other, most in BARS:
        for level in LEVELS:
            ratio = rows[row][level] / rows[other][level]
            is_met = say(f"{row} at {level}: {ratio:.2f} x {other}", ratio, most) and is_met
    code = rows["culaunch.h"][".text"]
    return say(f"culaunch.h at -O2: {code / 1000:.1f} KB", code, MOST_CODE) and is_met


def say(what: str, value: float, most: float) -> bool:
    """Print whether a bar is met."""
    print(f"  {what}  <= {most}: {'met' if value <= most else 'NOT MET'}")
    return value <= most


if __name__ == "__main__":
    sys.exit(main())
