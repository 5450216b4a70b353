"""Measure compile_many: 200 kernels in one process and in several, and the cost of a request.

No GPU is needed. A request takes a tenth of a second. Every engine starts and loads the compiler
before it is measured. Engines that are not installed are named. Run it on an idle machine:

    python benchmarks/compile_many.py [--kernels 200] [--workers 2] [--rounds 3] [--json FILE]
    mpiexec -n 3 python -m mpi4py.futures benchmarks/compile_many.py --engines mpi

"one process" is a loop of compile. "apart" is that loop in several independent processes, with a
part of the requests each: the machine's limit. Each round measures all of them, in the opposite
order of the round before, and compares with its own "one process". The report has the median of
the rounds, with the smallest and the largest ratio. Processor time counts all processes, including
the engine's own. On a busy machine it says more than the ratios.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import culaunch as cl

ARCH = "sm_80"
ALONE, APART = "one process", "apart"
HEADERS = {"numbers.h": "#define ONE 1\n" + "// nothing of use\n" * 5000}
SOURCE = """
#include <cuda_fp16.h>
#include "numbers.h"
template <class T, int k> __global__ void fill%d(T* y) {
  for (int i = 0; i < k; ++i) y[threadIdx.x + i * blockDim.x] = y[i] * T(k + ONE + %d);
}
"""


def requests(count: int, offset: int = 0) -> list[dict[str, object]]:
    return [
        {
            "source": SOURCE % (number, number),
            "names": [
                f"fill{number}<{kind}, {k}>"
                for kind in ("float", "double", "__half")
                for k in (2, 4, 8, 16)
            ],
        }
        for number in range(offset, offset + count)
    ]


# By default each process of Dask looks at itself many times a second, for the dashboard: that takes
# about 8 % of a core for two workers. And it has malloc give every free page back to the system at
# once, which costs a compiler about 5 %.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1},
}


@contextlib.contextmanager
def engine(name: str, workers: int, folder: str):
    """Start an engine; its ImportError names the missing package."""
    if name in ("spawn", "fork"):
        context = multiprocessing.get_context(name)
        with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
            yield pool
    elif name == "threads":
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            yield pool
    elif name in ("dask", "dask-quiet"):
        import dask
        from distributed import Client, LocalCluster

        with (
            dask.config.set(QUIET if name == "dask-quiet" else {}),
            LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=None,
                local_directory=folder, host="127.0.0.1",
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            yield client.get_executor()
    elif name == "ray":
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        try:
            yield cl.compiling.RayExecutor(num_cpus=1)
        finally:
            ray.shutdown()
    elif name == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as pool:
            yield pool


def compile_all(work, executor, path) -> float:
    start = time.perf_counter()
    cl.compiling.compile_many(
        work, executor=executor, headers=HEADERS, arch=ARCH, cache=cl.cache.Cache(path)
    )
    return time.perf_counter() - start


def compile_here(first: int, last: int, path: str) -> None:
    """Compile some of the requests in this process, one after the other."""
    cache = cl.cache.Cache(path)
    for request in requests(last - first, first):
        cl.compile(**request, headers=HEADERS, arch=ARCH, cache=cache)


def measure_alone(options: argparse.Namespace, workers: int, folder: str) -> dict[str, float]:
    """Share the requests among processes that have nothing in common."""
    context = multiprocessing.get_context("spawn")
    with contextlib.ExitStack() as stack:
        pools = [
            stack.enter_context(concurrent.futures.ProcessPoolExecutor(1, mp_context=context))
            for _ in range(workers)
        ]
        bounds = [options.kernels * number // workers for number in range(workers + 1)]

        def run(offset: int, places: list[int]) -> None:
            some = [
                pool.submit(compile_here, offset + a, offset + b, f"{folder}/alone{workers}-{n}")
                for n, (pool, a, b) in enumerate(zip(pools, places, places[1:], strict=False))
            ]
            for one in some:
                one.result()

        run(1_000_000, [4 * number for number in range(workers + 1)])
        start, before = time.perf_counter(), processor_seconds()
        run(0, bounds)
        return {
            "seconds": time.perf_counter() - start,
            "cpu_seconds": processor_seconds() - before,
        }


def measure(name: str, options: argparse.Namespace, folder: str) -> dict[str, float]:
    with engine(name, options.workers, folder) as pool:
        # Every worker loads the compiler.
        compile_all(requests(4 * options.workers, 1_000_000), pool, f"{folder}/warm")
        before = processor_seconds()
        cold = compile_all(requests(options.kernels), pool, f"{folder}/cold")
        cpu = processor_seconds() - before
        # All are in the cache: this measures the request, its transport and the hit.
        before = processor_seconds()
        hits = min(compile_all(requests(options.kernels), pool, f"{folder}/cold") for _ in range(3))
        hits_cpu = (processor_seconds() - before) / 3
    return {
        "seconds": cold,
        "cpu_seconds": cpu,
        "ms_per_request": hits / options.kernels * 1e3,
        "cpu_ms_per_request": hits_cpu / options.kernels * 1e3,
    }


def processor_seconds() -> float:
    """Return the use of this process and its children; NaN if it is not known."""
    try:
        return sum(map(_used, _with_children(os.getpid()))) / os.sysconf("SC_CLK_TCK")
    except FileNotFoundError:  # no /proc, or a process that has just ended
        return float("nan")


def _with_children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").iterdir()
    children = [int(word) for task in tasks for word in (task / "children").read_text().split()]
    return [process, *(one for child in children for one in _with_children(child))]


def _used(process: int) -> int:
    # After the name, which may hold anything: fields 14 to 17 are the time of the process itself
    # and of its children that have ended.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


def measure_round(
    names: list[str], options: argparse.Namespace, backwards: bool
) -> dict[str, dict[str, float]]:
    """Measure everything once; an engine that is not installed is not in the answer."""

    def found(name: str, folder: str) -> dict[str, float]:
        if name == ALONE:
            return measure_alone(options, 1, folder)
        if name == APART:
            return measure_alone(options, options.workers, folder)
        return measure(name, options, folder)

    results: dict[str, dict[str, float]] = {}
    for name in reversed(names) if backwards else names:
        # A directory of its own for each: caches are cold.
        with tempfile.TemporaryDirectory() as folder:
            try:
                results[name] = found(name, folder)
            except ImportError as error:
                print(f"{name:12} needs {error.name}", flush=True)
    one = results[ALONE]
    for each in results.values():
        each["times"] = one["seconds"] / each["seconds"]
        each["cpu_ratio"] = each["cpu_seconds"] / one["cpu_seconds"]
    return results


def summary(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each number, and the least and the greatest ratio."""
    found = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    times = [one["times"] for one in rounds]
    return {**found, "least_times": min(times), "most_times": max(times)}


def show(name: str, found: dict[str, float]) -> None:
    line = (f"{name:12} {found['seconds']:8.2f}  {found['times']:5.2f}x  "
            f"{found['least_times']:5.2f} to {found['most_times']:.2f}  "
            f"{found['cpu_seconds']:6.2f}  {found['cpu_ratio']:6.3f}")  # fmt: skip
    if "ms_per_request" in found:
        line += f"  {found['ms_per_request']:.2f} ms, {found['cpu_ms_per_request']:.2f} ms CPU"
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", default="threads,spawn,fork,dask,dask-quiet,ray")
    parser.add_argument(
        "--quick", action="store_true", help="compile 8 kernels once, to see that it runs"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if options.quick:
        options.kernels, options.rounds = 8, 1
    print(f"{options.kernels} kernels, {options.workers} workers, {options.rounds} rounds; "
          f"load before: {os.getloadavg()[0]:.2f} on {len(os.sched_getaffinity(0))} CPUs; "
          f"Python {platform.python_version()}", flush=True)  # fmt: skip
    names = list(dict.fromkeys([ALONE, APART, *options.engines.split(",")]))
    rounds = [measure_round(names, options, number % 2 == 1) for number in range(options.rounds)]
    results = {name: summary([one[name] for one in rounds]) for name in names if name in rounds[0]}
    print(f"{'':12} {'s':>8}  {'times':>6}  {'min to max':>12}  {'CPU s':>6}  {'ratio':>6}"
          "  per cached request")  # fmt: skip
    for name, found in results.items():
        show(name, found)
    print(f"load after: {os.getloadavg()[0]:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"options": vars(options), "results": results,
                                            "rounds": rounds}, default=str, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
