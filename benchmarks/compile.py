"""Measure compiling: cold, from the cache, from a second process, in a race, in parallel.

It needs no GPU, and loads and launches nothing. A contender that is missing or fails is named.
Peers compile the same source to a cubin: CuPy's compiler behind RawModule, cuda-core's Program
without and with its cache, torch's behind ``_compile_kernel``.

    python benchmarks/compile.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import culaunch as cl

ARCH = "sm_80"
PLAIN = """
extern "C" __global__ void scale(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""
TEMPLATES = """
template <class T, int k>
__global__ void fill(T* y) {
  for (int i = 0; i < k; ++i) y[threadIdx.x + i * blockDim.x] = y[i] * T(k);
}
"""
NAMES = [f"fill<{kind}, {k}>" for kind in ("float", "double", "int") for k in range(1, 7)]
CUB = """
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k%d(float* x) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) *x = sum + %d;
}
"""
SECOND_PROCESS = """
import sys, time
start = time.perf_counter()
import culaunch as cl
loaded = time.perf_counter()
cl.compile(sys.argv[1], arch=sys.argv[2], names=sys.argv[4:], cache=cl.cache.Cache(sys.argv[3]))
print(time.perf_counter() - loaded, loaded - start)
"""
HEADERS = """
#include <lib/h0.h>
extern "C" __global__ void k(int* o) { *o = LIB_H0; }
"""
# The first hit loads culaunch's modules; the second is the first of a source with headers.
HIT_WITH_HEADERS = """
import sys, time
import culaunch as cl
source, arch, dirs, path, plain = sys.argv[1:]
cache = cl.cache.Cache(path)
cl.compile(plain, arch=arch, cache=cache)
start = time.perf_counter()
cl.compile(source, arch=arch, include_dirs=[dirs], cache=cache)
print(time.perf_counter() - start)
"""
RACER = """
import os, sys, time
import culaunch as cl
from culaunch._compile import nvrtc
nvrtc.loaded_version()  # the library is loaded: the race is about the key
print("ready", flush=True)
sys.stdin.readline()
start = time.perf_counter()
cl.compile(sys.argv[1], arch=sys.argv[2], cache=cl.cache.Cache(sys.argv[3]))
print(time.perf_counter() - start)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="measure little, to see that it runs")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    options = parser.parse_args()
    rounds = 2 if options.quick else 10
    report = Report()
    with tempfile.TemporaryDirectory() as root:
        measure_cold_and_warm(report, Path(root), rounds)
        measure_second_process(report, Path(root), rounds)
        measure_headers(report, Path(root), rounds, 20 if options.quick else 300)
        if options.quick:
            measure_races(report, Path(root), PLAIN, (1, 2))
            measure_many(report, 1)
        else:
            measure_races(report, Path(root), CUB % (0, 0), (1, 2, 8))
            measure_many(report, rounds)
        if not options.quick:
            measure_pch(report)
        for name, make in PEERS.items():
            report.attempt(name, lambda make=make: make(report, Path(root), rounds))
    report.show()
    if options.json is not None:
        options.json.write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    return 0


class Report:
    """The numbers, and the missing contenders."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, list[float]]] = []
        self.missing: list[tuple[str, str]] = []
        self.ratios: list[tuple[str, float]] = []

    def add(self, name: str, seconds: list[float]) -> float:
        """Note the runs of one row; give their median."""
        self.rows.append((name, seconds))
        return statistics.median(seconds)

    def attempt(self, name: str, run) -> None:
        """Run; note why that failed."""
        try:
            run()
        except Exception as error:  # noqa: BLE001 - a peer that fails is named, not fatal
            text = str(error).splitlines() or [""]
            self.missing.append((name, f"{type(error).__name__}: {text[0][:160]}"))

    def show(self) -> None:
        """Print everything."""
        for key, value in machine().items():
            print(f"{key:<16} {value}")
        print(f"\n{'':<52} {'median':>11} {'best':>11}   runs")
        for name, seconds in self.rows:
            middle, best = statistics.median(seconds), min(seconds)
            print(f"{name:<52} {middle * 1e3:>8.3f} ms {best * 1e3:>8.3f} ms   {len(seconds)}")
        for name, ratio in self.ratios:
            print(f"{name:<52} {ratio:>8.2f} x")
        for name, reason in self.missing:
            print(f"missing: {name}: {reason}")

    def as_dict(self) -> dict[str, object]:
        """Return everything for JSON."""
        return {
            "machine": machine(),
            "seconds": dict(self.rows),
            "ratios": dict(self.ratios),
            "missing": dict(self.missing),
        }


def measure_cold_and_warm(report: Report, root: Path, rounds: int) -> None:
    cl.compile(fresh(PLAIN), arch=ARCH, cache=False)  # loads NVRTC
    for name, source, names in (("plain", PLAIN, []), ("18 templates", TEMPLATES, NAMES)):
        cache = cl.cache.Cache(root / f"cold-{len(names)}")

        def run(text: str, names: list[str] = names, cache: cl.cache.Cache = cache) -> cl.Image:
            return cl.compile(text, arch=ARCH, names=names, cache=cache)

        cold = [timed(lambda: run(fresh(source)))[0] for _ in range(rounds)]  # noqa: B023
        report.add(f"culaunch, cold, {name}", cold)
        text = fresh(source)
        size = len(run(text).data)
        warm = [timed(lambda: run(text))[0] for _ in range(rounds * 50)]  # noqa: B023
        report.add(f"culaunch, hit, {name} ({size:,} bytes)", warm)


def measure_second_process(report: Report, root: Path, rounds: int) -> None:
    command = [sys.executable, "-c", SECOND_PROCESS, TEMPLATES, ARCH, str(root / "second"), *NAMES]
    first = subprocess.check_output(command, text=True).split()
    report.add("culaunch, first process, NVRTC loaded in the call", [float(first[0])])
    runs = [subprocess.check_output(command, text=True).split() for _ in range(rounds)]
    report.add("culaunch, hit in a second process", [float(run[0]) for run in runs])
    report.add("  not included: import culaunch", [float(run[1]) for run in runs])


def measure_headers(report: Report, root: Path, rounds: int, count: int) -> None:
    """Measure hits of a source with many headers, as those of CuTe have."""
    include = root / "include"
    write_headers(include / "lib", count)
    time.sleep(2.1)  # until the files count as unchanged
    cache = cl.cache.Cache(root / "headers")

    def run() -> cl.Image:
        return cl.compile(HEADERS, arch=ARCH, include_dirs=[include], cache=cache)

    cl.compile(PLAIN, arch=ARCH, cache=cache)
    report.add(f"culaunch, cold, {count} headers", [timed(run)[0]])
    report.add(f"culaunch, hit, {count} headers", [timed(run)[0] for _ in range(rounds * 10)])
    command = [sys.executable, "-c", HIT_WITH_HEADERS, HEADERS, ARCH, str(include)]
    command += [cache.path, PLAIN]
    runs = [float(subprocess.check_output(command)) for _ in range(rounds)]
    report.add(f"culaunch, first hit in a process, {count} headers", runs)


def write_headers(directory: Path, count: int) -> None:
    """Write headers of 18 kB each that include one another."""
    directory.mkdir(parents=True)
    lines = [
        f"// line {line} of a header that says little\n#ifdef LIB_NEVER_{line}\n"
        f"template <class T> struct s{line} {{ T x; }};\n#endif\n"
        for line in range(150)
    ]
    for number in range(count):
        others = [other for other in (2 * number + 1, 2 * number + 2, number + 7) if other < count]
        names = "".join(f"#include <lib/h{other}.h>\n" for other in others)
        text = f"#pragma once\n{names}{''.join(lines)}#define LIB_H{number} {number}\n"
        (directory / f"h{number}.h").write_text(text)


def measure_races(report: Report, root: Path, text: str, counts: tuple[int, ...]) -> None:
    for count in counts:
        source = fresh(text)
        cache = root / f"race-{count}"
        command = [sys.executable, "-c", RACER, source, ARCH, str(cache)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        racers = [subprocess.Popen(command, **pipes) for _ in range(count)]
        for racer in racers:
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            racer.stdin.write("\n")
            racer.stdin.flush()
        report.add(
            f"{count} process{'es' if count > 1 else ''} at once on one key",
            [float(racer.communicate()[0]) for racer in racers],
        )


def measure_many(report: Report, rounds: int) -> None:
    medians = {}
    for jobs in (1, 2):
        seconds = []
        for _ in range(rounds):
            requests = [fresh(TEMPLATES) for _ in range(8)]

            def run(requests: list[str] = requests, jobs: int = jobs) -> list[cl.Image]:
                return cl.compiling.compile_many(
                    requests, jobs=jobs, arch=ARCH, names=NAMES, cache=False
                )

            seconds.append(timed(run)[0])
        medians[jobs] = report.add(f"compile_many, 8 sources, jobs={jobs}", seconds)
    report.ratios.append(("compile_many, jobs=2 against jobs=1", medians[1] / medians[2]))


def measure_pch(report: Report) -> None:
    plain = [timed(lambda: build_cub(pch=False))[0] for _ in range(3)]
    report.add("CUB kernel, pch=False", plain)
    first = timed(lambda: build_cub(pch=True))[0]
    report.add("CUB kernel, pch=True, first", [first])
    later = report.add(
        "CUB kernel, pch=True, later", [timed(lambda: build_cub(pch=True))[0] for _ in range(5)]
    )
    report.ratios.append(("pch=True, first against later", first / later))


def build_cub(*, pch: bool) -> cl.Image:
    number = uuid.uuid4().int % 10**6
    return cl.compile(CUB % (number, number), arch=ARCH, pch=pch, cache=False)


def peer_cupy(report: Report, root: Path, rounds: int) -> None:
    os.environ["CUPY_CACHE_DIR"] = str(root / "cupy")
    from cupy.cuda import compiler

    def run() -> object:
        return compiler.compile_using_nvrtc(fresh(PLAIN), arch=ARCH.removeprefix("sm_"))

    run()
    report.add("CuPy's NVRTC call, no cache", [timed(run)[0] for _ in range(rounds)])
    report.missing.append(
        ("CuPy RawModule with its cache", "needs a GPU, because it loads the module")
    )


def peer_cuda_core(report: Report, root: Path, rounds: int) -> None:
    from cuda.core import Program, ProgramOptions
    from cuda.core.utils import FileStreamProgramCache

    def run(text: str, **keywords: object) -> object:
        program = Program(text, "c++", ProgramOptions(arch=ARCH))
        return program.compile("cubin", **keywords)

    run(fresh(PLAIN))
    report.add("cuda-core, no cache", [timed(lambda: run(fresh(PLAIN)))[0] for _ in range(rounds)])
    cache = FileStreamProgramCache(root / "core")
    text = fresh(PLAIN)
    run(text, cache=cache)
    hits = [timed(lambda: run(text, cache=cache))[0] for _ in range(rounds * 50)]
    report.add("cuda-core, hit in its cache", hits)


def peer_torch(report: Report, root: Path, rounds: int) -> None:  # noqa: ARG001 - as the others
    from torch.cuda import _utils

    def run() -> object:
        compute = ARCH.removeprefix("sm_")
        return _utils._nvrtc_compile(  # noqa: SLF001 - it has no other name
            fresh(PLAIN), "scale", compute_capability=compute
        )

    run()
    report.add("torch _compile_kernel's compile", [timed(run)[0] for _ in range(rounds)])


PEERS = {
    "CuPy": peer_cupy,
    "cuda-core Program": peer_cuda_core,
    "torch _compile_kernel": peer_torch,
}


def timed(run) -> tuple[float, object]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def fresh(source: str) -> str:
    """Return a source that no cache has seen."""
    return f"{source}\n// {uuid.uuid4()}\n"


def machine() -> dict[str, str]:
    def found(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    packages = ("nvidia-cuda-nvrtc", "cuda-bindings", "cuda-core", "cupy-cuda13x", "torch")
    return {
        "processors": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: found(name) for name in packages},
    }


if __name__ == "__main__":
    sys.exit(main())
