"""Compare the times of a profile with those of a benchmark, and measure what a profile costs.

    python benchmarks/profiles.py [--json FILE] [--trace FILE] [--pictures FOLDER]

Kernels of several sizes are timed by ``cl.profile.benchmark`` and by ``cl.profile.launches``, one
launch at a time and many in a row. The host's cost of a launch is measured before, inside and after
a profile. Occupancy as culaunch computes it is compared with the driver's for many configurations.
``--pictures`` draws those of docs/profiling.md; it needs matplotlib and a GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import culaunch as cl

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = """
extern "C" __global__ void scale(float* y, const float* x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void multiply_add(float* y, int threads, int steps) {
  const int own = blockIdx.x * blockDim.x + threadIdx.x;
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = y[own + i * threads];
  for (int k = 0; k < steps; ++k)
    for (int i = 0; i < 64; ++i) v[i] = v[i] * 0.5f + 1.0f;
  for (int i = 0; i < 64; ++i) y[own + i * threads] = v[i];
}
template <int registers>
__global__ void __launch_bounds__(64) __maxnreg__(registers) busy(float* y, int n) {
  extern __shared__ float shared[];
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = y[i * n];
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + 1) % 64] + shared[0];
  for (int i = 0; i < 64; ++i) y[i * n] = v[i];
}
"""
REGISTERS = (24, 32, 40, 64, 72, 96, 128)
SHARED = (0, 1000, 5000, 20000, 40000, 76800, 76864, 100000)
BLOCKS = (32, 64)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--trace", type=Path, metavar="FILE")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="measure a few small sizes, for CI")
    options = parser.parse_args()
    is_emulated = cl.driver.driver_name() == "emulator"
    names = [] if options.quick else [f"busy<{count}>" for count in REGISTERS]
    arch = "compute_80" if options.quick else "native"
    source = SOURCE if names else SOURCE[: SOURCE.index("template")]
    module = cl.load(cl.compile(source, arch=arch, names=["scale", *names]))
    found: dict[str, Any] = {"device": cl.driver.Device().name, "is_emulated": is_emulated}
    found["times"] = [compare(module["scale"], n) for n in sizes(options.quick)]
    found["host_us"] = host_costs(module["scale"], 20 if options.quick else 20000)
    others = triton_launches()
    with cl.profile.launches():  # compile and load before the profile that is shown
        mixed(module["scale"], 1 << 12, others)
    with cl.profile.launches() as profile:
        mixed(module["scale"], 1 << 12 if options.quick else 1 << 24, others)
    print(profile)
    found["profile"] = str(profile)
    if options.trace:
        profile.save(options.trace)
    if options.pictures:
        draw(module, profile, options.pictures)
    if names:
        found["occupancy"] = occupancies(module)
    print(json.dumps({key: value for key, value in found.items() if key != "profile"}, indent=1))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def sizes(is_quick: bool) -> list[int]:
    """Return the numbers of elements."""
    return [1 << 10] if is_quick else [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 27]


def compare(kernel: cl.Kernel, n: int) -> dict[str, float | None]:
    """Time a kernel in microseconds, in three ways."""
    x, y = cl.zeros(n), cl.zeros(n)
    launcher = kernel[cl.ceildiv(n, 256), 256]
    timing = cl.profile.benchmark(launcher, y, x, 2.0, n, repeat=50, flush=False)
    with cl.profile.launches() as queued:
        for _ in range(50):
            launcher(y, x, 2.0, n)
    with cl.profile.launches() as idle:
        for _ in range(50):
            launcher(y, x, 2.0, n)
            cl.synchronize()

    def median(profile: cl.profile.Profile) -> float | None:
        taken = profile.kernels[0].device_time
        return None if taken is None else 1e3 * taken

    return {
        "elements": n,
        "benchmark_us": 1e3 * timing.median,
        "queued_us": median(queued),
        "idle_us": median(idle),
    }


def host_costs(kernel: cl.Kernel, count: int) -> dict[str, float]:
    """Return microseconds of the host for a launch, before, inside and after a profile."""
    x, y = cl.zeros(256), cl.zeros(256)
    launcher = kernel[1, 256]

    def burst() -> float:
        taken = []
        for _ in range(10):
            cl.synchronize()
            start = time.perf_counter()
            for _ in range(count // 20):
                launcher(y, x, 2.0, 256)
            taken.append(time.perf_counter() - start)
        return 1e6 * statistics.median(taken) / max(count // 20, 1)

    burst()
    costs = {"before": burst()}
    with cl.profile.launches(limit=10 * count):
        burst()
        costs["inside"] = burst()
    costs["after"] = burst()
    return costs


def mixed(kernel: cl.Kernel, n: int, others: list[Callable[[], object]]) -> None:
    """Launch by launchers, a function, a graph and, if it is installed, Triton."""
    x, y = cl.zeros(n), cl.zeros(n)

    @cl.function
    def twice(y: cl.Array, x: cl.Array) -> None:
        kernel[cl.ceildiv(x.size, 256), 256](y, x, 2.0, x.size)
        kernel[cl.ceildiv(x.size, 1024), 1024](x, y, 0.5, x.size)

    for _ in range(20):
        kernel[cl.ceildiv(n, 256), 256](y, x, 2.0, n)
    for _ in range(5):
        twice(y, x)
    with cl.Graph() as graph:
        kernel[1, 256](y, x, 2.0, 256)
        kernel[2, 256](y, x, 2.0, 512)
    graph.launch()
    for launch in others:
        launch()


def triton_launches() -> list[Callable[[], object]]:
    """Return a launch of a Triton kernel that culaunch makes native."""
    try:
        import torch
        import triton_add
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    x = torch.ones(1 << 20, device="cuda")
    y = torch.empty_like(x)
    launcher = cl.triton.native(triton_add.add)
    return [lambda: launcher[(1024,)](x, x, y, x.numel(), BLOCK=1024)]


def draw(module: cl.Module, profile: cl.profile.Profile, folder: Path) -> None:
    """Draw a profile's timeline, a distribution of times, a tuning and a roofline."""
    import matplotlib as mpl

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "profiling"})
    scale, n = module["scale"], 1 << 24
    x, y = cl.zeros(n), cl.zeros(n)
    timing = cl.profile.benchmark(scale[n // 256, 256], y, x, 2.0, n, bytes=8 * n, flops=n)
    configs = [{"grid": n // block, "block": block} for block in (32, 64, 128, 256, 512, 1024)]
    tuning = cl.tuning.tune(scale, configs, (y, x, 2.0, n))
    timings = [timing]
    for steps in (4, 16, 64):
        # Each thread has 64 values, and each step multiplies and adds all of them.
        threads = 64 * 4096
        values = cl.zeros(64 * threads)
        timings.append(
            cl.profile.benchmark(
                module["multiply_add"][threads // 64, 64], values, threads, steps,
                bytes=2 * values.nbytes, flops=2 * steps * values.size,
            )
        )  # fmt: skip
    for name, axes in {
        "timeline": profile.plot(),
        "times": timing.plot(),
        "tuning": tuning.plot(),
        "roofline": cl.profile.plot_roofline(timings),
    }.items():
        axes.figure.savefig(folder / f"profiling_{name}.svg", metadata={"Date": None})


def occupancies(module: cl.Module) -> dict[str, int]:
    """Return for how many configurations the computed limit is the driver's number of blocks."""
    y = cl.zeros(1 << 12)
    with cl.profile.launches() as profile:
        for registers, shared, block in itertools.product(REGISTERS, SHARED, BLOCKS):
            module[f"busy<{registers}>"][1, block, shared](y, 0)
    agreed = sum(bool(row.limited_by) for row in profile.kernels)
    for row in profile.kernels:
        if not row.limited_by:
            print("unexplained:", row)
    return {"configurations": len(profile.kernels), "agreed": agreed}


if __name__ == "__main__":
    main()
