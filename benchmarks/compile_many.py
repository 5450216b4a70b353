"""Measure compile_many: 200 kernels by one process and by several, and what a request costs.

No GPU is needed. Every engine is started and has loaded the compiler before it is measured; engines
that are not installed are named. Run it on a machine with nothing else to do:

    python benchmarks/compile_many.py [--kernels 200] [--workers 2] [--quick] [--json FILE]
    mpiexec -n 3 python -m mpi4py.futures benchmarks/compile_many.py --engines mpi
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import platform
import tempfile
import time
from pathlib import Path

import culaunch as cl

ARCH = "sm_80"
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
            "names": [f"fill{number}<{kind}, {k}>" for kind in ("float", "__half") for k in (4, 8)],
        }
        for number in range(offset, offset + count)
    ]


@contextlib.contextmanager
def engine(name: str, workers: int, folder: str):
    """Start an engine; its ImportError says what is missing."""
    if name in ("spawn", "fork"):
        context = multiprocessing.get_context(name)
        with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
            yield pool
    elif name == "threads":
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            yield pool
    elif name == "dask":
        from distributed import Client, LocalCluster

        with (
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
            yield cl.RayExecutor(num_cpus=1)
        finally:
            ray.shutdown()
    elif name == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as pool:
            yield pool


def compile_all(work, executor, path) -> float:
    start = time.perf_counter()
    cl.compile_many(work, executor=executor, headers=HEADERS, arch=ARCH, cache=cl.Cache(path))
    return time.perf_counter() - start


def measure(name: str, options: argparse.Namespace, folder: str) -> dict[str, float]:
    with engine(name, options.workers, folder) as pool:
        # Every worker loads the compiler.
        compile_all(requests(4 * options.workers, 1_000_000), pool, f"{folder}/warm")
        cold = compile_all(requests(options.kernels), pool, f"{folder}/cold")
        # All are in the cache: what is left is the request, its way there and back, and the hit.
        hits = min(compile_all(requests(options.kernels), pool, f"{folder}/cold") for _ in range(3))
    return {"seconds": cold, "ms_per_request": hits / options.kernels * 1e3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engines", default="threads,spawn,fork,dask,ray")
    parser.add_argument("--quick", action="store_true", help="8 kernels, to see that it runs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.kernels = 8
    print(f"{options.kernels} kernels, {options.workers} workers; load before: "
          f"{os.getloadavg()[0]:.2f} on {len(os.sched_getaffinity(0))} CPUs; "
          f"Python {platform.python_version()}")  # fmt: skip
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        with engine("spawn", 1, folder) as one:
            compile_all(requests(1, 1_000_000), one, f"{folder}/one-warm")
            alone = compile_all(requests(options.kernels), one, f"{folder}/one")
        results["one process"] = {"seconds": alone}
        print(f"{'one process':12} {alone:8.2f} s")
        for name in options.engines.split(","):
            place = f"{folder}/{name}"
            os.mkdir(place)
            try:
                found = measure(name, options, place)
            except ImportError as error:
                print(f"{name:12} needs {error.name}")
                continue
            found["times"] = alone / found["seconds"]
            results[name] = found
            print(f"{name:12} {found['seconds']:8.2f} s  {found['times']:5.2f} x  "
                  f"{found['ms_per_request']:6.2f} ms a request that is in the cache")  # fmt: skip
    print(f"load after: {os.getloadavg()[0]:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"options": vars(options), "results": results},
                                           default=str, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
