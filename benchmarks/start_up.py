"""Measure the start of many processes that load one library: time, and their own memory.

Each process loads a library with 1,000 variants of a Triton kernel and reads some images, as first
calls would. Then all wait, and the memory of each is read while all are alive. Once the library is
written, this needs no GPU and no Triton. Use --library for a library of your own.

    python benchmarks/start_up.py [--processes 1,50,200] [--variants 1000] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKER = """
import json, os, sys, time
def memory():
    with open("/proc/self/smaps_rollup") as file:
        lines = (line.split() for line in file)
        return {words[0][:-1].lower(): int(words[1]) for words in lines if words[-1] == "kB"}
import culaunch.triton as ct
before = memory()
start, cpu = time.perf_counter(), time.process_time()
kernels = ct.KernelSet.load(sys.argv[1])
loaded, loaded_cpu = time.perf_counter() - start, time.process_time() - cpu
images = [kernels._saved.image(one.image) for one in kernels.variants[:: len(kernels) // 8][:8]]
took, took_cpu = time.perf_counter() - start, time.process_time() - cpu
print("ready", flush=True)
sys.stdin.readline()
now = memory()
print(json.dumps({"load_ms": loaded * 1e3, "load_cpu_ms": loaded_cpu * 1e3, "ms": took * 1e3,
                  "cpu_ms": took_cpu * 1e3, "rss_kb": now["rss"], "pss_kb": now["pss"],
                  "private_kb": now["private_dirty"] - before["private_dirty"]}), flush=True)
sys.stdin.readline()
"""


def write_library(path: str, variants: int) -> None:
    """Write a library with one compiled kernel many times, each image of 40 KB made different."""
    import culaunch.triton as ct

    source = Path(path).with_name("start_up_kernel.py")
    source.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\n"
        "def double(y, x, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    tl.store(y + at, tl.load(x + at, at < n) * 2, at < n)\n"
    )
    sys.path.insert(0, str(source.parent))
    import start_up_kernel

    one = ct.compile(
        start_up_kernel.double, "*fp32:16, *fp32:16, i32", arch="sm_80", constants={"BLOCK": 64}
    )
    (variant,) = one.variants
    image = one.read(variant.image)
    members, made = {}, []
    for number in range(variants):
        name = f"images/{hashlib.sha256(b'%d' % number).hexdigest()[:20]}.cubin"
        members[name] = image + bytes(40_000 - len(image)) + b"%08d" % number
        made.append(dataclasses.replace(variant, constants={"BLOCK": 64 + number}, image=name))
    saved = one._saved  # noqa: SLF001
    many = dataclasses.replace(saved, variants=tuple(made), read=members.__getitem__)
    ct.KernelSet(many).save(path)


def measure(path: str, processes: int) -> dict[str, float]:
    with contextlib.ExitStack() as stack:
        start = time.perf_counter()
        running = []
        for _ in range(processes):
            process = subprocess.Popen(
                [sys.executable, "-c", WORKER, path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.stdin.close)
            running.append(process)
        for process in running:
            assert process.stdout.readline() == "ready\n"
        all_ready = time.perf_counter() - start
        # All processes are running: shared memory counts in parts, which is the meaning of PSS.
        for process in running:
            process.stdin.write("\n")
            process.stdin.flush()
        said = [json.loads(process.stdout.readline()) for process in running]
    found = {name: sorted(one[name] for one in said)[len(said) // 2] for name in said[0]}
    return {"processes": processes, **found, "all_ready_s": all_ready}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", default="1,50,200")
    parser.add_argument("--variants", type=int, default=1000)
    parser.add_argument("--library", help="your own library, with one Triton kernel")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.library
        if path is None:
            path = f"{folder}/library.culib"
            write_library(path, options.variants)
        print(f"{os.path.getsize(path):,} bytes, {len(os.sched_getaffinity(0))} CPUs, load "
              f"{os.getloadavg()[0]:.1f}; medians over the processes")  # fmt: skip
        print("processes  load CPU ms  with 8 images  RSS MB  PSS MB  own MB  all ready")
        rows = []
        for count in map(int, options.processes.split(",")):
            rows.append(row := measure(path, count))
            print(f"{count:9}  {row['load_cpu_ms']:11.1f}  {row['cpu_ms']:13.1f}  "
                  f"{row['rss_kb'] / 1e3:6.1f}  {row['pss_kb'] / 1e3:6.1f}  "
                  f"{row['private_kb'] / 1e3:6.1f}  {row['all_ready_s']:7.2f} s")  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
