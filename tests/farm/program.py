"""Run by test_engines: compile some kernels on an engine, and print what came of it as JSON.

A program of its own: engines start threads and processes, and some of them want to be the parent.
"""

import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import sys
import threading

import culaunch as cl

HEADERS = {"big.h": "// " + "x" * 300_000 + "\n#define FIVE 5\n"}
REQUESTS = [
    f'#include "big.h"\n__global__ void k{number}(int* x) {{ *x = FIVE + {number}; }}'
    for number in range(12)
]
REQUESTS[7] = '#include "big.h"\n__global__ void k7(int* x) { *x = oops; }'


@contextlib.contextmanager
def engine(name, folder):
    if name in ("fork", "spawn"):
        context = multiprocessing.get_context(name)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            yield pool
    elif name == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                dashboard_address=None,
                local_directory=folder,
                host="127.0.0.1",
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client.get_executor()
    elif name == "ray":
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            yield cl.compiling.RayExecutor(num_cpus=1)
        finally:
            ray.shutdown()
    elif name == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        with MPIPoolExecutor() as pool:
            yield pool
    elif name == "submitit":
        import submitit

        pool = submitit.LocalExecutor(folder)
        pool.update_parameters(timeout_min=2)
        yield pool


def where():
    return os.getpid(), threading.get_ident()


def main(name, path, folder):
    seen = []
    requests = REQUESTS if name != "submitit" else REQUESTS[6:9]  # a Python for each job
    with engine(name, folder) as pool:
        found = cl.compiling.compile_many(
            requests,
            executor=pool,
            headers=HEADERS,
            arch="sm_80",
            cache=cl.cache.Cache(path),
            progress=seen.append,
            return_exceptions=True,
        )
        again = cl.compiling.compile_many(
            [one for one in requests if "oops" not in one],
            executor=pool,
            headers=HEADERS,
            arch="sm_80",
            cache=cl.cache.Cache(path),
        )
    good = [one for one in found if isinstance(one, cl.Image)]
    (bad,) = (one for one in found if not isinstance(one, cl.Image))
    answer = {
        "names": [one.kernels[0].demangled for one in good],
        "same": again == good,
        "error": [type(bad).__name__, str(bad), bad.log],
        "entries": cl.cache.Cache(path).info().entries,
        "progress": [(now.done, now.total, now.failed) for now in seen][-1],
    }
    print("ANSWER", json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
