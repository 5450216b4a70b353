"""Measure fused elementwise kernels on a GPU beside a copy, torch, torch.compile and CuPy.

    python benchmarks/elementwise.py [--quick] [--json FILE]
    python benchmarks/elementwise.py --plot FILE.json FIGURE.svg

Bandwidth is the bytes of the function's arrays, read and written, divided by the time of a kernel
on the GPU (CUDA events). A copy moves as many bytes from device to device. Overhead is the time of
a call on the CPU. The bars:

- contiguous arrays: at least 0.92 of the copy from 64 M elements on
- strided arrays: at most 1.3 times the time of torch.compile
- a call with out=: at most 1.5 times a bare launch
- never slower than CuPy
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)
COMPILED = 1 << 22  # torch.compile takes seconds a size: for smaller ones its overhead is shown
CLOCK = 2_000_000_000  # Hz, about a GPU's: how long its waits are
COLORS = {"culaunch": "tab:blue", "copy": "black", "torch": "tab:orange",
          "torch.compile": "tab:green", "cupy ElementwiseKernel": "tab:red",
          "cupy fuse": "tab:purple"}  # fmt: skip
BARS = {"copy": 0.92, "strided": 1.3, "overhead": 1.5, "cupy": 1.0}
LARGE = 1 << 26
# A measurement is noisy by this much: a peer is beaten by more, or not.
NOISE = 1.03

ADD = """
extern "C" __global__ void add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
"""


def gelu(m: Any) -> Callable[..., Any]:
    return lambda x: 0.5 * x * (1 + m.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


def chain(m: Any) -> Callable[..., Any]:
    """Ten operations on two arrays."""
    return lambda x, y: m.maximum(m.sqrt(m.abs(x * y + 1.5)) - 0.25 * x, y) * (x - y) / (1 + x * x)


def bias(m: Any) -> Callable[..., Any]:  # noqa: ARG001
    return lambda x, y: x * 1.5 + y


class Bench:
    """The measurements, as rows of a table."""

    def __init__(self, quick: bool) -> None:
        import torch

        from culaunch import elementwise as ew

        self.torch, self.ew, self.quick = torch, ew, quick
        self.rows: list[dict[str, Any]] = []
        self.types = {"float32": torch.float32, "bfloat16": torch.bfloat16}
        self.fused = {f.__name__: ew.fuse(f(ew)) for f in (gelu, chain, bias)}
        self.eager = {f.__name__: f(torch) for f in (gelu, chain, bias)}
        try:
            import cupy

            self.cupy: Any = cupy
        except ImportError:
            self.cupy = None

    def run(self) -> dict[str, Any]:
        """Measure everything; failures are reported and left out."""
        sizes = SIZES[-3:] if self.quick else SIZES
        for name in ("gelu", "chain"):
            for dtype in self.types:
                for size in sizes:
                    self.contiguous(name, dtype, size)
        for dtype in self.types:
            for side in (1024, 8192, 16000) if not self.quick else (8192,):
                self.strided("transposed", "gelu", dtype, side)
                self.strided("one transposed", "chain", dtype, side)
                self.strided("broadcast", "bias", dtype, side)
        overhead = self.overhead()
        return {"machine": self.machine(), "rows": self.rows, "overhead": overhead}

    def machine(self) -> dict[str, str]:
        """Name the GPU and the versions."""
        import culaunch as cl

        return {
            "gpu": self.torch.cuda.get_device_name(),
            "torch": self.torch.__version__,
            "culaunch": cl.__version__,
            "cupy": self.cupy.__version__ if self.cupy else "none",
        }

    def contiguous(self, name: str, dtype: str, size: int) -> None:
        """Measure a function of contiguous arrays beside a copy of as many bytes."""
        arrays = self.arrays(name, dtype, (size,))
        out = self.torch.empty_like(arrays[0])
        runs: dict[str, Callable[[], Any]] = {
            "culaunch": lambda: self.fused[name](*arrays, out=out),
            "torch": lambda: self.eager[name](*arrays),
        }
        if size >= COMPILED:
            self.add_compiled(runs, name, arrays, out)
        self.add_cupy(runs, name, dtype, arrays, out)
        moved = (len(arrays) + 1) * size * out.element_size()
        # A copy reads and writes: half of the bytes each.
        source = self.torch.empty(moved // 2, dtype=self.torch.uint8, device="cuda")
        target = self.torch.empty_like(source)
        runs["copy"] = lambda: target.copy_(source)
        self.measure(f"{name} contiguous", dtype, size, moved, runs)

    def strided(self, layout: str, name: str, dtype: str, side: int) -> None:
        """Measure a function of arrays that do not lie in one order."""
        if layout == "broadcast":
            arrays = [*self.arrays("gelu", dtype, (side, side)), *self.arrays("gelu", dtype, side)]
            moved_elements = 2 * side * side
        else:
            arrays = self.arrays(name, dtype, (side, side))
            arrays[0] = arrays[0].t()
            moved_elements = (len(arrays) + 1) * side * side
        out = self.torch.empty((side, side), dtype=self.types[dtype], device="cuda")
        runs: dict[str, Callable[[], Any]] = {
            "culaunch": lambda: self.fused[name](*arrays, out=out),
            "torch": lambda: out.copy_(self.eager[name](*arrays)),
        }
        self.add_compiled(runs, name, arrays, out)
        self.add_cupy(runs, name, dtype, arrays, out)
        moved = moved_elements * out.element_size()
        self.measure(f"{name} {layout}", dtype, side * side, moved, runs)

    def arrays(self, name: str, dtype: str, shape: Any) -> list[Any]:
        """Make random arguments."""
        count = 2 if name == "chain" else 1
        return [self.torch.randn(shape, device="cuda").to(self.types[dtype]) for _ in range(count)]

    def add_compiled(self, runs: dict[str, Any], name: str, arrays: list[Any], out: Any) -> None:
        """Add torch.compile's code, which writes to out as ours does."""
        eager = self.eager[name]

        def into(*args: Any) -> None:
            args[-1].copy_(eager(*args[:-1]))

        self.torch._dynamo.reset()  # noqa: SLF001
        compiled = self.torch.compile(into, dynamic=False)
        try:
            compiled(*arrays, out)
        except Exception as error:  # noqa: BLE001
            print(f"torch.compile failed: {type(error).__name__}: {str(error)[:200]}")
            return
        runs["torch.compile"] = lambda: compiled(*arrays, out)

    def add_cupy(
        self, runs: dict[str, Any], name: str, dtype: str, arrays: list[Any], out: Any
    ) -> None:
        """Add CuPy's two ways."""
        if self.cupy is None or dtype == "bfloat16":
            return  # CuPy's kernels have no bfloat16
        given = [self.cupy.from_dlpack(array) for array in arrays]
        target = self.cupy.from_dlpack(out)
        texts = {
            "gelu": "z = 0.5f*x*(1 + tanhf(0.79788456f*(x + 0.044715f*x*x*x)))",
            "chain": "z = max(sqrt(abs(x*y + 1.5f)) - 0.25f*x, y) * (x - y) / (1 + x*x)",
            "bias": "z = x * 1.5f + y",
        }
        inputs = "T x, T y" if len(given) == 2 else "T x"
        kernel = self.cupy.ElementwiseKernel(inputs, "T z", texts[name], f"cupy_{name}")
        runs["cupy ElementwiseKernel"] = lambda: kernel(*given, target)
        fused = self.cupy.fuse(globals()[name](self.cupy))
        try:
            fused(*given)
        except Exception as error:  # noqa: BLE001
            print(f"cupy.fuse failed: {type(error).__name__}: {str(error)[:200]}")
            return
        runs["cupy fuse"] = lambda: fused(*given)

    def measure(
        self, what: str, dtype: str, size: int, moved: int, runs: dict[str, Callable[[], Any]]
    ) -> None:
        """Time every peer and print the row."""
        row = {"what": what, "dtype": dtype, "size": size, "bytes": moved, "us": {}}
        for peer, run in runs.items():
            row["us"][peer] = self.gpu_time(run, moved)
        self.rows.append(row)
        rates = "  ".join(
            f"{peer} {us:.1f} us {moved / us / 1e6:.2f} TB/s" for peer, us in row["us"].items()
        )
        print(f"{what:22} {dtype:9} {size:>10}  {rates}", flush=True)

    def gpu_time(self, run: Callable[[], Any], moved: int) -> float:
        """Time a kernel on the GPU in microseconds: the median of bursts that queue up."""
        cuda = self.torch.cuda
        for _ in range(3):
            run()
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(10):
            run()
        call = (time.perf_counter() - start) / 10
        # Few enough for the launch queue, though a call of torch launches ten kernels.
        burst = max(3, min(60, int(3e9 / max(moved, 1))))
        # The GPU waits while the CPU queues the burst: only its own time counts.
        wait = min(int(1.5 * call * burst * CLOCK) + 1_000_000, CLOCK // 10)
        times = []
        for _ in range(5 if self.quick else 9):
            cuda.synchronize()
            begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            cuda._sleep(wait)  # noqa: SLF001
            begin.record()
            for _ in range(burst):
                run()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1000 / burst)
        return statistics.median(times)

    def overhead(self) -> dict[str, float]:
        """Time a call on the CPU, in microseconds, with arrays of 1 K elements."""
        import culaunch as cl

        torch = self.torch
        x, y = (torch.randn(1024, device="cuda") for _ in range(2))
        z = torch.empty_like(x)
        launcher = cl.load(cl.compile(ADD, arch="native"))["add"][4, 256]
        add = self.ew.fuse(lambda x, y: x + y)
        text = self.ew.kernel("T x, T y", "T z", "z = x + y")
        eager = torch.compile(lambda x, y: x + y)
        calls: dict[str, Callable[[], Any]] = {
            "bare launch": lambda: launcher(z, x, y, 1024),
            "culaunch out=": lambda: add(x, y, out=z),
            "culaunch": lambda: add(x, y),
            "culaunch kernel out=": lambda: text(x, y, out=z),
            "torch out=": lambda: torch.add(x, y, out=z),
            "torch.compile": lambda: eager(x, y),
        }
        if self.cupy is not None:
            a, b, c = (self.cupy.from_dlpack(each) for each in (x, y, z))
            kernel = self.cupy.ElementwiseKernel("T x, T y", "T z", "z = x + y", "cupy_add")
            calls["cupy ElementwiseKernel"] = lambda: kernel(a, b, c)
            calls["culaunch, CuPy arrays"] = lambda: add(a, b, out=c)
        return {name: self.cpu_time(call) for name, call in calls.items()}

    def cpu_time(self, call: Callable[[], Any]) -> float:
        """Time a call on the CPU in microseconds."""
        for _ in range(100):
            call()
        times = []
        for _ in range(20):
            self.torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):  # fewer than fill the launch queue
                call()
            times.append((time.perf_counter() - start) / 200 * 1e6)
        return statistics.median(times)


def judge(results: dict[str, Any]) -> list[str]:
    """Compare with the bars; what falls short is listed."""
    short = []
    for row in results["rows"]:
        ours, name = row["us"]["culaunch"], f"{row['what']} {row['dtype']} {row['size']}"
        if "contiguous" in row["what"] and row["size"] >= LARGE:
            share = row["us"]["copy"] / ours
            if share < BARS["copy"]:
                short.append(f"{name}: {share:.3f} of the copy's bandwidth")
        elif "contiguous" not in row["what"] and "torch.compile" in row["us"]:
            slower = ours / row["us"]["torch.compile"]
            if slower > BARS["strided"]:
                short.append(f"{name}: {slower:.2f} x the time of torch.compile")
        for peer, us in row["us"].items():
            if peer.startswith("cupy") and ours > us * NOISE:
                short.append(f"{name}: {ours / us:.2f} x the time of {peer}")
    overhead = results["overhead"]
    ratio = overhead["culaunch out="] / overhead["bare launch"]
    if ratio > BARS["overhead"]:
        short.append(f"a call with out= takes {ratio:.2f} x the time of a bare launch")
    return short


def plot(results: dict[str, Any], path: str) -> None:
    """Draw the bandwidth over the size, with the copy as the roof."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    cases = sorted({(r["what"], r["dtype"]) for r in results["rows"] if "contig" in r["what"]})
    figure, axes = plt.subplots(
        2, (len(cases) + 1) // 2, figsize=(9, 6.4), sharey=True, constrained_layout=True
    )
    for axis, case in zip(axes.flat, cases, strict=False):
        rows = [r for r in results["rows"] if (r["what"], r["dtype"]) == case]
        for peer, color in COLORS.items():
            points = [
                (r["size"], r["bytes"] / r["us"][peer] / 1e6) for r in rows if peer in r["us"]
            ]
            if points:
                style = "--" if peer == "copy" else "o-"
                axis.plot(*zip(*points, strict=True), style, color=color, label=peer, ms=3)
        axis.set(title=" ".join(case), xlabel="elements", xscale="log")
        axis.set_ylabel("TB/s read and written")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.suptitle(results["machine"]["gpu"])
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="measure fewer sizes")
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    parser.add_argument(
        "--plot",
        nargs=2,
        metavar=("JSON", "FIGURE"),
        help="draw a figure from a file of measurements",
    )
    options = parser.parse_args()
    if options.plot:
        plot(json.loads(Path(options.plot[0]).read_text()), options.plot[1])
        return 0
    results = Bench(options.quick).run()
    print("\na call on the CPU, us: " + json.dumps(results["overhead"], indent=2))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    short = judge(results)
    print("\n".join(["bars not met:", *short]) if short else "all bars met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
