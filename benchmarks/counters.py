"""Compare the counts of ``culaunch.testing.profile`` with the counters of Nsight Compute.

    python benchmarks/counters.py [--json FILE] [--emulated]

Ten kernels run on the emulated driver, which counts what they execute, and on the GPU under
``ncu``. Both execute the same PTX. The GPU runs the machine code that the driver compiles from it,
so numbers of instructions are not compared. With ``--emulated``, only the emulator runs.

Two differences are expected. The driver's compiler merges loads of adjacent words of shared memory
(``tree``, ``matmul``), so they need fewer wavefronts. A GPU moves a sector again for lanes of an
atomic operation that have the same address (``histogram``).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import culaunch as cl
from culaunch import testing

SOURCE = """
extern "C" __global__ void copy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
extern "C" __global__ void strided(float* y, const float* x, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[(i * stride) % 65536];
}
extern "C" __global__ void shifted(float4* y, const float* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = make_float4(x[i + 1], x[i + 2], x[i + 3], x[i + 5]);
}
extern "C" __global__ void gather(double* y, const double* x, const int* index) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[index[i]];
}
extern "C" __global__ void transpose(float* y, const float* x) {
  __shared__ float tile[32][32];
  int across = blockIdx.x * 32, down = blockIdx.y * 32;
  tile[threadIdx.y][threadIdx.x] = x[(down + threadIdx.y) * 256 + across + threadIdx.x];
  __syncthreads();
  y[(across + threadIdx.y) * 256 + down + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void padded(float* y, const float* x) {
  __shared__ float tile[32][33];
  int across = blockIdx.x * 32, down = blockIdx.y * 32;
  tile[threadIdx.y][threadIdx.x] = x[(down + threadIdx.y) * 256 + across + threadIdx.x];
  __syncthreads();
  y[(across + threadIdx.y) * 256 + down + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void tree(float* y, const float* x) {
  __shared__ float box[256];
  box[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  for (int stride = 1; stride < 256; stride *= 2) {
    __syncthreads();
    int at = 2 * stride * threadIdx.x;
    if (at < 256) box[at] += box[at + stride];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = box[0];
}
extern "C" __global__ void histogram(unsigned* counts, const unsigned* x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&counts[x[i] % 61], 1u);
}
extern "C" __global__ void matmul(float* c, const float* a, const float* b) {
  __shared__ float left[16][16], right[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 64; k += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * 64 + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * 64 + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum = fmaf(left[threadIdx.y][i], right[i][threadIdx.x], sum);
    __syncthreads();
  }
  c[row * 64 + column] = sum;
}
extern "C" __global__ void wide(double2* y, const double2* x) {
  __shared__ double2 box[256];
  box[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  double2 other = box[255 - threadIdx.x];
  y[blockIdx.x * 256 + threadIdx.x] = make_double2(other.x + other.y, other.x * other.y);
}
"""

GLOBAL = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
FLOPS = "smsp__sass_thread_inst_executed_op_{}{}_pred_on.sum"
# For each count the counters of Nsight Compute whose sum it is, with their factors.
COUNTERS = {
    "global_requests": {GLOBAL.format("requests", op): 1 for op in ("ld", "st", "red", "atom")},
    "sectors": {GLOBAL.format("sectors", op): 1 for op in ("ld", "st", "red", "atom")},
    "wavefronts": {SHARED.format("ld"): 1, SHARED.format("st"): 1},
    "flops": {
        FLOPS.format(kind, op): 2 if op == "fma" else 1
        for kind in "fd"
        for op in ("add", "mul", "fma")
    },
}


def calls() -> dict[str, tuple[tuple[Any, Any], tuple[Any, ...]]]:
    """Return for each kernel its grid and block, and its arguments."""
    rng = np.random.default_rng(0)
    floats = cl.to_device(rng.random(65536, np.float32))
    doubles = cl.to_device(rng.random(65536))
    index = cl.to_device(rng.integers(0, 65536, 4096, np.int32))
    numbers = cl.to_device(rng.integers(0, 2**32, 8192, np.uint32))
    out, wide_out = cl.zeros(65536, "f4"), cl.zeros(65536, "f8")
    right = cl.to_device(rng.random(4096, np.float32))
    counts = cl.zeros(61, "u4")
    return {
        "copy": ((40, 256), (out, floats, 10000)),
        "strided": ((16, 256), (out, floats, 5)),
        "shifted": ((16, 256), (out, floats)),
        "gather": ((16, 256), (wide_out, doubles, index)),
        "transpose": (((8, 8), (32, 32)), (out, floats)),
        "padded": (((8, 8), (32, 32)), (out, floats)),
        "tree": ((64, 256), (out, floats)),
        "histogram": ((32, 256), (counts, numbers)),
        "matmul": (((4, 4), (16, 16)), (out, floats, right)),
        "wide": ((16, 256), (wide_out, doubles)),
    }


def launch_all(run: Any) -> None:
    """Call ``run(name, launcher, arguments)`` for each kernel."""
    module = cl.load(cl.compile(SOURCE, arch="compute_80"))
    for name, ((grid, block), arguments) in calls().items():
        launcher = module[name][grid, block]
        run(name, launcher, arguments)


def emulated() -> dict[str, dict[str, int]]:
    """Count on the emulator."""
    found = {}

    def count(name: str, launcher: Any, arguments: tuple[Any, ...]) -> None:
        (kernel,) = testing.profile(launcher, *arguments).kernels
        found[name] = {field: getattr(kernel.total, field) for field in COUNTERS}

    with testing.use_driver("emulator"):
        launch_all(count)
    return found


def measured() -> dict[str, dict[str, int]]:
    """Count on the GPU with Nsight Compute."""
    names = [name for counters in COUNTERS.values() for name in counters]
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--metrics"]
    command += [",".join(names), sys.executable, __file__, "--launch"]
    run = subprocess.run(command, text=True, capture_output=True, check=False)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stdout}\n{run.stderr}")
    lines = [line for line in run.stdout.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the first row has the units
    found = {}
    for row in rows:
        found[row["Kernel Name"].split("(")[0]] = {
            count: sum(factor * number(row[name]) for name, factor in counters.items())
            for count, counters in COUNTERS.items()
        }
    return found


def number(text: str) -> int:
    """Return the number that ncu printed."""
    return round(float(text.replace(",", "")))


def report(found: dict[str, dict[str, dict[str, int]]]) -> str:
    """Return the table: the emulator's count, and the GPU's if it is another."""
    lines = [f"{'kernel':12}" + "".join(f"{name:>20}" for name in COUNTERS)]
    for name, counts in found["emulator"].items():
        cells = []
        for field, count in counts.items():
            other = found.get("gpu", {}).get(name, {}).get(field, count)
            cells.append(f"{count:,}" if other == count else f"{count:,} ({other:,})")
        lines.append(f"{name:12}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


def main() -> int:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--emulated", action="store_true", help="run only the emulator")
    parser.add_argument("--launch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.launch:
        launch_all(lambda _, launcher, arguments: launcher(*arguments))
        cl.driver.Device().synchronize()
        return 0
    found = {"emulator": emulated()}
    if not options.emulated:
        found["gpu"] = measured()
    print(report(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    os.environ["CULAUNCH_GRAPHS"] = "0"
    sys.exit(main())
