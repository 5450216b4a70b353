"""Measure the emulated driver: the time of kernels on the CPU, and the minimum cost of a launch.

No GPU is needed. Results are checked before they count. Each kernel runs in the NumPy engine, in
the compiled one if there is a C compiler, and as a C loop (emulator_twins.c, -O2, one core). Times
are the thread's on the processor. The NumPy engine has two bars: 1 M elements added in 0.3 s, and a
256 x 256 x 256 product with shared memory in 5 s, on 2 cores. The compiled engine has a bar for
each kernel, in multiples of the C loop's time.

    python benchmarks/emulator.py [--rounds N] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
extern "C" __global__ void nbody(float* force, const float4* body, int n) {
  __shared__ float4 tile[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 p = body[i];
  float x = 0, y = 0, z = 0;
  for (int start = 0; start < n; start += 128) {
    tile[threadIdx.x] = body[start + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 128; ++j) {
      float4 q = tile[j];
      float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float scale = q.w * inverse * inverse * inverse;
      x += dx * scale; y += dy * scale; z += dz * scale;
    }
    __syncthreads();
  }
  force[3 * i] = x; force[3 * i + 1] = y; force[3 * i + 2] = z;
}
extern "C" __global__ void attention(float* out, const float* q, const float* k, const float* v,
                                     int n) {
  __shared__ float keys[32][64], values[32][64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float most = -1e30f, sum = 0, row[64], query[64];
  for (int d = 0; d < 64; ++d) { row[d] = 0; query[d] = q[i * 64 + d]; }
  for (int start = 0; start < n; start += 32) {
    for (int e = threadIdx.x; e < 32 * 64; e += blockDim.x) {
      keys[e / 64][e % 64] = k[start * 64 + e];
      values[e / 64][e % 64] = v[start * 64 + e];
    }
    __syncthreads();
    for (int j = 0; j < 32; ++j) {
      float score = 0;
      for (int d = 0; d < 64; ++d) score += query[d] * keys[j][d];
      score *= 0.125f * 1.44269504f;
      float now = fmaxf(score, most), old = exp2f(most - now), weight = exp2f(score - now);
      sum = sum * old + weight;
      for (int d = 0; d < 64; ++d) row[d] = row[d] * old + weight * values[j][d];
      most = now;
    }
    __syncthreads();
  }
  for (int d = 0; d < 64; ++d) out[i * 64 + d] = row[d] / sum;
}
extern "C" __global__ void nothing() {}
"""
LONGEST = 1.0
COLUMNS = ("numpy", "compiled", "c")
BARS = {"add": 0.3, "matmul": 5.0}
TIMES_C = {
    "add": 3.0,
    "matmul": 5.0,
    "mandelbrot": 3.0,
    "histogram": 5.0,
    "nbody": 4.0,
    "attention": 5.0,
}


class Bench:
    """The kernels with their arguments, one method for each."""

    def __init__(self, quick: bool) -> None:
        self.module = cl.load(cl.compile(SOURCE, arch="compute_80", name="emulator.cu"))
        self.quick = quick
        self.rng = np.random.default_rng(0)

    def add(self) -> Row:
        """Add vectors: memory-bound, no branch but the last block's."""
        n = 1 << (16 if self.quick else 20)
        x, y = self.rng.standard_normal((2, n), np.float32)
        z = np.zeros_like(x)
        launcher = self.module["add"].configure(grid=-(-n // 256), block=256)
        return Row(f"vector add, {n:,} elements", launcher, (z, x, y, n), x + y)

    def matmul(self) -> Row:
        """Multiply matrices: shared memory, barriers, a loop in a loop."""
        n = 64 if self.quick else 256
        a, b = self.rng.standard_normal((2, n, n), np.float32)
        launcher = self.module["matmul"].configure(grid=(n // 16, n // 16), block=(16, 16))
        expected = a.astype("f8") @ b.astype("f8")
        title = f"tiled matmul, {n} x {n} x {n} in f32"
        return Row(title, launcher, (np.zeros_like(a), a, b, n), expected)

    def mandelbrot(self) -> Row:
        """Iterate until each lane escapes: divergence."""
        n, limit = (32 if self.quick else 256), 100
        count = np.zeros(n * n, np.int32)
        launcher = self.module["mandelbrot"].configure(grid=-(-n * n // 128), block=128)
        return Row(f"Mandelbrot, {n} x {n}, {limit} steps", launcher, (count, n, limit))

    def histogram(self) -> Row:
        """Count bytes with atomics on 256 words."""
        n = 1 << (14 if self.quick else 20)
        x = self.rng.integers(0, 256, n, np.uint8)
        launcher = self.module["histogram"].configure(grid=n // 256, block=256)
        expected = np.bincount(x, minlength=256)
        return Row(f"histogram, {n:,} bytes", launcher, (np.zeros(256, np.int32), x, n), expected)

    def nbody(self) -> Row:
        """Sum forces: a long loop over few threads."""
        n = 256 if self.quick else 4096
        body = self.rng.standard_normal((n, 4)).astype(np.float32)
        force = np.zeros((n, 3), np.float32)
        launcher = self.module["nbody"].configure(grid=n // 128, block=128)
        return Row(f"n-body, {n:,} bodies", launcher, (force, body, n))

    def attention(self) -> Row:
        """Attend with an online softmax: a long loop over very few threads."""
        n = 128 if self.quick else 512
        q, k, v = self.rng.standard_normal((3, n, 64)).astype(np.float32)
        scores = np.exp(q.astype("f8") @ k.T / 8)
        expected = scores @ v / scores.sum(axis=1, keepdims=True)
        launcher = self.module["attention"].configure(grid=n // 128, block=128)
        arguments = (np.zeros_like(q), q, k, v, n)
        return Row(f"attention, {n} tokens, 64 wide", launcher, arguments, expected)

    def nothing(self) -> Row:
        """Launch one thread that ends at once: the minimum cost of a launch."""
        return Row("an empty kernel", self.module["nothing"].configure(grid=1, block=1), ())


class Row(NamedTuple):
    """A kernel, its arguments (the first is the result), and the expected result."""

    title: str
    launch: Callable[..., object]
    arguments: tuple[Any, ...]
    expected: np.ndarray | None = None

    def run(self) -> bytes:
        """Launch once on a result of zeros; return its bits, which were checked."""
        result = self.arguments[0] if self.arguments else np.zeros(1)
        result[:] = 0
        self.launch(*self.arguments)
        if self.expected is not None:
            np.testing.assert_allclose(result, self.expected, rtol=1e-3, atol=1e-3)
        return bytes(result.tobytes())


def seconds(run: Callable[[], object], rounds: int) -> list[float]:
    """Time some rounds, fewer if they are long, after one that has made everything ready."""
    times: list[float] = []
    while len(times) < rounds and sum(times) < LONGEST:
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return times


def measure(quick: bool, rounds: int, twins: Any) -> list[dict[str, object]]:
    """Time each kernel in each engine, and its twin."""
    bench = Bench(quick)
    found = []
    for name in ("add", "matmul", "mandelbrot", "histogram", "nbody", "attention", "nothing"):
        row: Row = getattr(bench, name)()
        bar = None if quick else BARS.get(name)
        entry: dict[str, object] = {"name": name, "title": row.title, "bar": bar}
        entry["times_c"] = None if quick else TIMES_C.get(name)
        results = {}
        for engine in ("numpy", "compiled") if twins else ("numpy",):
            os.environ["CULAUNCH_EMULATOR_ENGINE"] = engine
            results[engine] = row.run()
            entry[engine] = seconds(lambda row=row: row.launch(*row.arguments), rounds)
        assert len(set(results.values())) == 1, f"{name}: the engines' results differ"
        if twins and name != "nothing":
            values = [
                ctypes.c_void_p(x.ctypes.data) if isinstance(x, np.ndarray) else x
                for x in row.arguments
            ]
            twin = getattr(twins, name)
            entry["c"] = seconds(lambda twin=twin, values=values: twin(*values), rounds)
        found.append(entry)
    return found


def compile_twins(folder: str) -> Any:
    """Return the loaded twins, or None without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library = Path(__file__).with_name("emulator_twins.c"), Path(folder, "twins.so")
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def main() -> int:
    """Measure and print; the exit status says whether the bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=5, help="launches per kernel and engine (default: 5)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure small sizes, to see that it runs"
    )
    parser.add_argument("--json", type=Path, help="also write the measurements to this file")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder, testing.use_driver("emulator"):
        results = measure(options.quick, options.rounds, compile_twins(folder))
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, NumPy {np.__version__}"
    print(f"{machine}, Python {platform.python_version()}, culaunch {cl.__version__}")
    print(f"{'ms':42}{'NumPy':>9}{'compiled':>10}{'C loop':>9}{'times C':>9}")
    late = 0
    for result in results:
        times = {k: 1e3 * statistics.median(result[k]) for k in COLUMNS if k in result}
        shown = f"{result['title']:42}{times['numpy']:9.2f}"
        if "compiled" in times:
            shown += f"{times['compiled']:10.2f}"
        if "c" in times:
            ratio, most = times["compiled"] / times["c"], result["times_c"]
            shown += f"{times['c']:9.2f}{ratio:9.1f}"
            if most is not None:
                late += ratio > most
                shown += f"  bar {most} x C: {'met' if ratio <= most else 'MISSED'}"
        bar = result["bar"]
        if bar is not None:
            late += times["numpy"] > 1e3 * bar
            shown += f"  bar {bar} s: {'met' if times['numpy'] <= 1e3 * bar else 'MISSED'}"
        print(shown)
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "results": results}, indent=1))
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
