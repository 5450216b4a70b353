"""Measure the emulated driver: how long kernels take on the CPU, and what a launch costs at least.

No GPU is needed. Results are checked against NumPy before they count. Two bars are the project's:
1 M elements added in 0.3 s, and a 256 x 256 x 256 product with shared memory in 5 s, on 2 cores.

    python benchmarks/emulator.py [--rounds N] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import culaunch as cl
from culaunch import testing

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = """
extern "C" __global__ void add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
extern "C" __global__ void matmul(float* c, const float* a, const float* b, int n) {
  __shared__ float left[16][16], right[16][16];
  int x = threadIdx.x, y = threadIdx.y;
  int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
extern "C" __global__ void mandelbrot(int* count, int n, int limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float cr = -2.0f + 3.0f * (i % n) / n, ci = -1.5f + 3.0f * (i / n) / n, r = 0, s = 0;
  int k = 0;
  for (; k < limit && r * r + s * s <= 4; ++k) {
    float t = r * r - s * s + cr;
    s = 2 * r * s + ci;
    r = t;
  }
  count[i] = k;
}
extern "C" __global__ void histogram(int* bins, const unsigned char* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[x[i]], 1);
}
extern "C" __global__ void nothing() {}
"""
BARS = {"add": 0.3, "matmul": 5.0}


class Bench:
    """The kernels with their arguments, one method for each."""

    def __init__(self, quick: bool) -> None:
        self.module = cl.load(cl.compile(SOURCE, arch="compute_80", name="emulator.cu"))
        self.quick = quick
        self.rng = np.random.default_rng(0)

    def add(self) -> tuple[str, Callable[[], object]]:
        """Add vectors: memory-bound, no branch but the last block's."""
        n = 1 << (16 if self.quick else 20)
        x, y = self.rng.standard_normal((2, n), np.float32)
        z = np.zeros_like(x)
        launcher = self.module["add"].configure(grid=-(-n // 256), block=256)
        launcher(z, x, y, n)
        np.testing.assert_array_equal(z, x + y)
        return f"vector add, {n:,} elements", lambda: launcher(z, x, y, n)

    def matmul(self) -> tuple[str, Callable[[], object]]:
        """Multiply matrices: shared memory, barriers, a loop in a loop."""
        n = 64 if self.quick else 256
        a, b = self.rng.standard_normal((2, n, n), np.float32)
        c = np.zeros_like(a)
        launcher = self.module["matmul"].configure(grid=(n // 16, n // 16), block=(16, 16))
        launcher(c, a, b, n)
        np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=1e-3, atol=1e-3)
        return f"tiled matmul, {n} x {n} x {n} in f32", lambda: launcher(c, a, b, n)

    def mandelbrot(self) -> tuple[str, Callable[[], object]]:
        """Iterate until each lane escapes: divergence."""
        n, limit = (32 if self.quick else 256), 100
        count = np.zeros(n * n, np.int32)
        launcher = self.module["mandelbrot"].configure(grid=-(-n * n // 128), block=128)
        launcher(count, n, limit)
        assert count.min() > 0
        assert count.max() == limit
        return f"Mandelbrot, {n} x {n}, {limit} steps", lambda: launcher(count, n, limit)

    def histogram(self) -> tuple[str, Callable[[], object]]:
        """Count bytes with atomics on 256 words."""
        n = 1 << (14 if self.quick else 20)
        x = self.rng.integers(0, 256, n, np.uint8)
        bins = np.zeros(256, np.int32)
        launcher = self.module["histogram"].configure(grid=n // 256, block=256)
        launcher(bins, x, n)
        np.testing.assert_array_equal(bins, np.bincount(x, minlength=256))
        return f"histogram, {n:,} bytes", lambda: launcher(bins, x, n)

    def nothing(self) -> tuple[str, Callable[[], object]]:
        """Launch one thread that ends at once: what a launch costs at least."""
        launcher = self.module["nothing"].configure(grid=1, block=1)
        launcher()
        return "an empty kernel", launcher


def measure(quick: bool, rounds: int) -> list[dict[str, object]]:
    """Time each kernel: the median of some rounds, after one that decoded its PTX."""
    bench = Bench(quick)
    found = []
    for name in ("add", "matmul", "mandelbrot", "histogram", "nothing"):
        title, launch = getattr(bench, name)()
        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            launch()
            times.append(time.perf_counter() - start)
        bar = None if quick else BARS.get(name)
        found.append({"name": name, "title": title, "seconds": times, "bar": bar})
    return found


def main() -> int:
    """Measure and print; the exit status says whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="launches of each (default: 5)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", type=Path, help="write the numbers there, too")
    options = parser.parse_args()

    with testing.use_driver("emulator"):
        results = measure(options.quick, options.rounds)
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, NumPy {np.__version__}"
    print(f"{machine}, Python {platform.python_version()}, culaunch {cl.__version__}")
    late = 0
    for result in results:
        median, bar = statistics.median(result["seconds"]), result["bar"]
        verdict = ""
        if bar is not None:
            late += median > bar
            verdict = f"  bar {bar} s: {'met' if median <= bar else 'MISSED'}"
        shown = f"{median * 1e3:9.2f} ms"
        print(f"{result['title']:42}{shown}{verdict}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
