"""Measure reductions in fused functions on a GPU beside torch, torch.compile, CuPy, CUB and Liger.

    python benchmarks/reductions.py [--quick] [--backward] [--json FILE]
        [--only TEXT ...] [--peers NAME ...]
    python benchmarks/reductions.py --plot FILE.json FIGURE.svg

Times are of the GPU (CUDA events), the medians of bursts that queue up; bandwidth is the bytes of
the arrays, read and written once. A copy from device to device is the roof. Bars: a sum of 2^28
elements at 0.95 of the copy's bandwidth; softmax, rms_norm and layer_norm at or under the time of
torch.compile. Peers that are not installed are left out. --only measures the cases whose names
contain one of the texts, such as "softmax backward bfloat16 8192".
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
QUICK = (128, 1024, 8192, 65536)
ELEMENTS = 1 << 26
COLORS = {"culaunch": "tab:blue", "torch": "tab:orange", "torch.compile": "tab:green",
          "liger": "tab:red"}  # fmt: skip
CLOCK = 2_000_000_000  # Hz, about a GPU's: how long its waits are
COLD = """
import time, tempfile, os
os.environ["CULAUNCH_CACHE_DIR"] = tempfile.mkdtemp()
import torch
from culaunch import elementwise as ew
x = torch.randn(64, 1024, device="cuda")
torch.cuda.synchronize()
warm = ew.fuse(lambda x: x + 1)
first = time.perf_counter(); warm(x); torch.cuda.synchronize()
second = time.perf_counter()
def softmax(x):
    e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
    return e / ew.sum(e, axis=-1, keepdims=True)
ew.fuse(softmax)(x); torch.cuda.synchronize()
print(second - first, time.perf_counter() - second)
"""


def functions(ew: Any) -> dict[str, Any]:
    """Return the functions that are measured."""

    def softmax(x: Any) -> Any:
        e = ew.exp(x - ew.max(x, axis=-1, keepdims=True))
        return e / ew.sum(e, axis=-1, keepdims=True)

    def rms_norm(x: Any, weight: Any) -> Any:
        return x * ew.rsqrt(ew.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight

    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        apart = x - ew.mean(x, axis=-1, keepdims=True)
        scale = ew.rsqrt(ew.mean(apart * apart, axis=-1, keepdims=True) + 1e-5)
        return apart * scale * weight + bias

    return {one.__name__: ew.fuse(one) for one in (softmax, rms_norm, layer_norm)}


class Bench:
    """The measurements, as rows of a table."""

    def __init__(
        self, *, quick: bool, only: tuple[str, ...] = (), peers: tuple[str, ...] = ()
    ) -> None:
        import torch

        from culaunch import elementwise as ew

        self.torch, self.ew, self.quick = torch, ew, quick
        self.only, self.peers = only, peers
        self.fused = functions(ew)
        self.rows: list[dict[str, Any]] = []

    def run(self, *, backward: bool) -> dict[str, Any]:
        """Measure everything; failures are reported and left out."""
        for dtype in ("float32", "float16"):
            for size in (1 << 12, 1 << 20, 1 << 24, 1 << 28):
                if self.is_wanted("sum", dtype, size):
                    self.sum(dtype, size)
            if self.is_wanted("sum of columns", dtype, 8192):
                self.sums("sum of columns", dtype, 8192, 0)
            for row in QUICK[:3]:
                if self.is_wanted("sum of rows", dtype, row):
                    self.sums("sum of rows", dtype, row, 1)
        for name in self.fused:
            for dtype in ("float32", "bfloat16"):
                for row in QUICK if self.quick else ROWS:
                    if self.is_wanted(name, dtype, row):
                        self.forward(name, dtype, row)
                    if backward and self.is_wanted(f"{name} backward", dtype, row):
                        self.backward(name, dtype, row)
        cold = [] if self.only else self.cold()
        machine = {
            "gpu": self.torch.cuda.get_device_name(),
            "torch": self.torch.__version__,
        }
        return {"machine": machine, "rows": self.rows, "cold": cold}

    def is_wanted(self, what: str, dtype: str, size: int) -> bool:
        """Tell whether a case is among the chosen ones."""
        case = f"{what} {dtype} {size} "
        return not self.only or any(f"{one} " in case for one in self.only)

    # ---- cases

    def sum(self, dtype: str, size: int) -> None:
        """Sum up one array."""
        torch, x = self.torch, self.array(dtype, (size,))
        total = self.ew.fuse(lambda x: self.ew.sum(x))  # noqa: PLW0108
        out = torch.empty((), dtype=x.dtype, device="cuda")
        compiled = self.compiled(lambda x: x.sum())
        runs: dict[str, Any] = {
            "culaunch": lambda: total(x, out=out),
            "torch": lambda: torch.sum(x, 0, out=out),
            "torch.compile": lambda: compiled(x),
            "copy": self.copy(x.nbytes),
        }
        with contextlib.suppress(ImportError):
            import cupy

            given = cupy.from_dlpack(x)
            kernel = cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "cupy_sum")
            runs["cupy ReductionKernel"] = lambda: kernel(given)
            runs["cupy sum (CUB)"] = lambda: cupy.sum(given)
        self.measure("sum", dtype, size, x.nbytes, runs)

    def sums(self, what: str, dtype: str, size: int, axis: int) -> None:
        """Sum up the columns of a matrix, or its rows, which have that size."""
        x = self.array(dtype, (ELEMENTS // size, size))
        total = self.ew.fuse(lambda x: self.ew.sum(x, axis=axis))
        compiled = self.compiled(lambda x: x.sum(axis))
        runs = {
            "culaunch": lambda: total(x),
            "torch": lambda: self.torch.sum(x, axis),
            "torch.compile": lambda: compiled(x),
            "copy": self.copy(x.nbytes),
        }
        self.measure(what, dtype, size, x.nbytes, runs)

    def forward(self, name: str, dtype: str, row: int) -> None:
        """Normalize rows."""
        args, eager = self.case(name, dtype, row)
        fused, compiled = self.fused[name], self.compiled(eager)
        # All allocate, and get the same memory: a kernel's time depends on where its output lies.
        runs = {
            "culaunch": lambda: fused(*args),
            "torch": lambda: eager(*args),
            "torch.compile": lambda: compiled(*args),
            "copy": self.copy(2 * args[0].nbytes),
        }
        self.measure(name, dtype, row, 2 * args[0].nbytes, runs)

    def backward(self, name: str, dtype: str, row: int) -> None:
        """Compute the gradients of normalized rows."""
        args, eager = self.case(name, dtype, row)
        args = [one.requires_grad_() for one in args]
        ours = self.operator(name)
        runs = {}
        grad = self.torch.randn_like(args[0])
        peers = {"culaunch": ours, "torch": eager, "torch.compile": self.compiled(eager)}
        peers |= self.liger(name)
        for peer, function in peers.items():
            if self.peers and peer not in self.peers:
                continue
            try:
                result = function(*args)
            except Exception as error:  # noqa: BLE001
                print(f"{peer} {name}: {type(error).__name__}: {str(error)[:150]}")
                continue
            runs[peer] = lambda result=result: self.torch.autograd.grad(
                result, args, grad, retain_graph=True
            )
        runs["copy"] = self.copy(3 * args[0].nbytes)
        self.measure(f"{name} backward", dtype, row, 3 * args[0].nbytes, runs)

    def operator(self, name: str) -> Any:
        """Return a function as an operator with gradients from its trace."""
        import culaunch as cl

        known = getattr(self, "_operators", {})
        if name not in known:
            known[name] = cl.frameworks.torch_op(
                f"reductions::{name}", self.fused[name], backward="auto"
            )
        self._operators = known
        return known[name]

    def liger(self, name: str) -> dict[str, Any]:
        """Return Liger's kernel of the same, if it is installed."""
        with contextlib.suppress(ImportError):
            if name == "rms_norm":
                from liger_kernel.ops.rms_norm import LigerRMSNormFunction

                return {"liger": lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-5, 0.0, "llama",
                                                                         False)}  # fmt: skip
            if name == "layer_norm":
                from liger_kernel.ops.layer_norm import LigerLayerNormFunction

                return {"liger": lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-5)}
            from liger_kernel.ops.softmax import LigerSoftmaxFunction

            return {"liger": LigerSoftmaxFunction.apply}
        return {}

    def case(self, name: str, dtype: str, row: int) -> tuple[list[Any], Callable[..., Any]]:
        """Return arguments of a row length, and the function in torch."""
        functional = self.torch.nn.functional
        x = self.array(dtype, (ELEMENTS // row, row))
        weight, bias = self.array(dtype, (row,)), self.array(dtype, (row,))
        if name == "softmax":
            return [x], lambda x: functional.softmax(x, -1)
        if name == "rms_norm":
            return [x, weight], lambda x, w: functional.rms_norm(x, (row,), w, 1e-5)
        return [x, weight, bias], lambda x, w, b: functional.layer_norm(x, (row,), w, b, 1e-5)

    def cold(self) -> list[float]:
        """Return the seconds of the first call of any kind, and of a softmax after it."""
        run = subprocess.run(
            [sys.executable, "-c", COLD], check=True, capture_output=True, text=True
        )
        seconds = [float(one) for one in run.stdout.split()]
        print(f"cold: first kernel {seconds[0]:.3f} s, then softmax {seconds[1]:.3f} s")
        return seconds

    # ---- measuring

    def array(self, dtype: str, shape: Any) -> Any:
        """Make a random array."""
        return self.torch.randn(shape, device="cuda").to(getattr(self.torch, dtype))

    def compiled(self, function: Any) -> Any:
        """Return a function under torch.compile."""
        self.torch._dynamo.reset()  # noqa: SLF001
        return self.torch.compile(function, dynamic=False)

    def copy(self, moved: int) -> Callable[[], Any]:
        """Return a copy from device to device that reads and writes so many bytes."""
        source = self.torch.empty(moved // 2, dtype=self.torch.uint8, device="cuda")
        target = self.torch.empty_like(source)
        return lambda: target.copy_(source)

    def measure(
        self, what: str, dtype: str, size: int, moved: int, runs: dict[str, Callable[[], Any]]
    ) -> None:
        """Time every peer and print the row."""
        row = {"what": what, "dtype": dtype, "size": size, "bytes": moved, "us": {}}
        for peer, run in runs.items():
            if self.peers and peer not in self.peers:
                continue
            try:
                row["us"][peer] = self.gpu_time(run, moved)
            except Exception as error:  # noqa: BLE001
                print(f"{peer}: {type(error).__name__}: {str(error)[:300]}")
        self.rows.append(row)
        times = "  ".join(f"{peer} {us:.1f}" for peer, us in row["us"].items())
        print(f"{what:20} {dtype:9} {size:>10}  us: {times}", flush=True)

    def gpu_time(self, run: Callable[[], Any], moved: int) -> float:
        """Time a run on the GPU in microseconds."""
        cuda = self.torch.cuda
        for _ in range(3):
            run()
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(10):
            run()
        call = (time.perf_counter() - start) / 10
        burst = max(3, min(40, int(1e9 / max(moved, 1))))
        # The GPU waits while the CPU queues the burst: only its own time counts.
        wait = min(int(1.5 * call * burst * CLOCK) + 1_000_000, CLOCK // 10)
        times = []
        for _ in range(5):
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


def judge(results: dict[str, Any]) -> list[str]:
    """Compare with the bars; what falls short is listed."""
    short = []
    for row in results["rows"]:
        us, name = row["us"], f"{row['what']} {row['dtype']} {row['size']}"
        if "culaunch" not in us:
            short.append(f"{name}: no time")
        elif row["what"] == "sum":
            if row["size"] >= 1 << 28 and us["copy"] / us["culaunch"] < 0.95:
                short.append(f"{name}: {us['copy'] / us['culaunch']:.3f} of the copy's bandwidth")
        elif us["culaunch"] > us.get("torch.compile", us["culaunch"]) * 1.03:
            ratio = us["culaunch"] / us["torch.compile"]
            short.append(f"{name}: {ratio:.2f} x the time of torch.compile")
    return short


def plot(results: dict[str, Any], path: str) -> None:
    """Draw the share of the copy's bandwidth over the length of a row."""
    import matplotlib as mpl

    mpl.use("svg")
    # The same file for the same measurements, with its text as text.
    mpl.rcParams.update({"svg.hashsalt": "reductions", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    names = ("softmax", "rms_norm", "layer_norm")
    cases = [(f"{name}{way}", dtype) for way in ("", " backward")
             for dtype in ("float32", "bfloat16") for name in names]  # fmt: skip
    figure, axes = plt.subplots(
        4, 3, figsize=(9, 9.5), sharex=True, sharey=True, constrained_layout=True
    )
    for axis, case in zip(axes.flat, cases, strict=True):
        rows = [row for row in results["rows"] if (row["what"], row["dtype"]) == case]
        for peer, color in COLORS.items():
            points = [
                (row["size"], row["us"]["copy"] / row["us"][peer])
                for row in rows
                if peer in row["us"]
            ]
            if points:
                axis.plot(*zip(*points, strict=True), "o-", color=color, label=peer, ms=3)
        axis.set(title=" ".join(case), ylim=(0, 1.1))
        axis.set_xscale("log", base=2)
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("elements of a row")
    for axis in axes[:, 0]:
        axis.set_ylabel("share of the bandwidth")
    axes[-1, -1].legend(fontsize=7)
    figure.suptitle(results["machine"]["gpu"])
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="measure fewer row lengths")
    parser.add_argument("--backward", action="store_true", help="also measure gradients")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="TEXT", help="measure only these cases"
    )
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    parser.add_argument(
        "--peers", nargs="+", default=(), metavar="NAME", help="measure only these peers"
    )
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
    only, peers = tuple(options.only), tuple(options.peers)
    bench = Bench(quick=options.quick, only=only, peers=peers)
    results = bench.run(backward=options.backward)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    short = judge(results)
    print("\n" + ("\n".join(short) if short else "all bars met"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
