"""Measure launches as executable graphs: beside plain launches and graphs in C, and torch's.

One process. Every row is measured in bursts, interleaved over its contenders: with graphs, and
then the same with graphs off. A contender that is missing is named with the reason.

    python benchmarks/graphs.py
    python benchmarks/graphs.py --host-only
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import threading
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from overhead.bench import Bench
from overhead.build import build_library, cuda_include
from overhead.cases import BLOCK, GRID, MAIN

import culaunch as cl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Burst = Callable[[int], int]

PLAIN_C, GRAPH_C = "plain launches in C", "graph by hand in C"
TEN = 10
TWENTY = 20
KERNELS = 1000
THREADS = 8


class Row(ctypes.Structure):
    """``struct row`` of graph_twin.c."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("changing", ctypes.c_void_p),
        ("grid", ctypes.c_uint),
        ("block", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("launches", ctypes.c_int),
        ("graph", ctypes.c_void_p),
        ("executable", ctypes.c_void_p),
        ("nodes", ctypes.c_void_p * 64),
    )


class Rows:
    """Everything that is measured, over the kernel of three pointers and an int."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        source = Path(__file__).parent / "overhead" / "graph_twin.c"
        flags = [f"-I{cuda_include()}"]
        library = build_library("libgraphs.so", {source.name: source.read_text()}, flags, ["-ldl"])
        self.twin = ctypes.CDLL(str(library))
        for name in ("graphs_plain", "graphs_graph"):
            getattr(self.twin, name).restype = ctypes.c_int64
            getattr(self.twin, name).argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
        if code := self.twin.graphs_open(bench.driver.encode()):
            raise RuntimeError(f"opening {bench.driver} failed: {code}")
        self.kernel = cl.load(bench.image)[MAIN.mangled]
        self.launcher = self.kernel[GRID, BLOCK]
        self.numbers = (MAIN.int_values[0], MAIN.int_values[0] ^ 1)
        self.x, self.y, self.z = bench.tensors[:3]
        self._kept: list[Any] = []
        kernel = self.kernel

        @cl.function
        def ten(x: Any, y: Any, z: Any, n: int) -> None:
            for _ in range(TEN):
                kernel[GRID, BLOCK](x, y, z, n)

        self.ten = ten

    # ---- in C

    def in_c(self, launches: int, *, waits: bool = False) -> dict[str, Burst]:
        """Make the bursts of the two twins."""
        slots = [ctypes.c_uint64(one) for one in self.bench.buffers[:3]]
        number = ctypes.c_int(self.numbers[0])
        addresses = [*map(ctypes.addressof, slots), ctypes.addressof(number)]
        arguments = (ctypes.c_void_p * 4)(*addresses)
        row = Row(
            self.bench.function(MAIN), ctypes.addressof(arguments), ctypes.addressof(number),
            GRID, BLOCK, self.bench.stream, launches,
        )  # fmt: skip
        self._kept.append((slots, number, arguments, row))
        at = ctypes.addressof(row)
        if code := self.twin.graphs_make(ctypes.c_void_p(at)):
            raise RuntimeError(f"creating the graph in C failed: {code}")
        return {
            PLAIN_C: lambda count: self.twin.graphs_plain(at, waits, count),
            GRAPH_C: lambda count: self.twin.graphs_graph(at, waits, count),
        }

    # ---- rows: contender -> burst

    def _one(self) -> dict[str, Burst]:
        x, y, z, numbers = self.x, self.y, self.z, self.numbers
        launcher, kernel = self.launcher, self.kernel
        return {
            **self.in_c(1),
            "launcher": _burst(lambda i: launcher(x, y, z, numbers[i & 1])),
            "kernel[grid, block]": _burst(lambda i: kernel[GRID, BLOCK](x, y, z, numbers[i & 1])),
            "launcher, arguments the same": _burst(lambda _: launcher(x, y, z, numbers[0])),
        }

    def _waited(self) -> dict[str, Burst]:
        x, y, z, numbers, launcher = self.x, self.y, self.z, self.numbers, self.launcher
        wait = self._waiter()

        def call(i: int) -> None:
            launcher(x, y, z, numbers[i & 1])
            wait()

        return {**self.in_c(1, waits=True), "launcher, then wait": _burst(call)}

    def _waiter(self) -> Callable[[], Any]:
        stream = self.bench.torch_stream
        return stream.synchronize if stream else (lambda: None)

    def _several(self) -> dict[str, Burst]:
        x, y, z, numbers, ten = self.x, self.y, self.z, self.numbers, self.ten
        bursts = {
            **self.in_c(TEN),
            "function of ten": _burst(lambda i: ten(x, y, z, numbers[i & 1])),
        }
        if not self.bench.host_only:
            replay = self._torch_replay(lambda: ten(x, y, z, numbers[0]))
            bursts["replay of torch.cuda.graph"] = _burst(replay)
        return bursts

    def _several_waited(self) -> dict[str, Burst]:
        x, y, z, numbers, ten = self.x, self.y, self.z, self.numbers, self.ten
        wait = self._waiter()

        def call(i: int) -> None:
            ten(x, y, z, numbers[i & 1])
            wait()

        return {**self.in_c(TEN, waits=True), "function of ten, then wait": _burst(call)}

    def _explicit(self) -> dict[str, Burst]:
        x, y, z, numbers, launcher = self.x, self.y, self.z, self.numbers, self.launcher
        with cl.Graph() as graph:
            for _ in range(TWENTY):
                launcher(x, y, z, numbers[0])
        updates = [node.update for node in graph.nodes]
        self._kept.append(graph)

        def call(i: int) -> None:
            n = numbers[i & 1]
            for update in updates:
                update(x, y, z, n)
            graph.launch()

        rows = [[(x, y, z, n)] * TWENTY for n in numbers]

        def at_once(i: int) -> None:
            graph.update_all(rows[i & 1])
            graph.launch()

        bursts = {
            **self.in_c(TWENTY),
            "cl.Graph of twenty, updated node by node": _burst(call),
            "cl.Graph of twenty, all arguments updated": _burst(at_once),
            "cl.Graph of twenty, launched alone": _burst(lambda _: graph.launch()),
        }
        if not self.bench.host_only:
            replay = self._torch_replay(lambda: [launcher(x, y, z, 1) for _ in range(TWENTY)])
            bursts["replay of torch.cuda.graph"] = _burst(replay)
        return bursts

    def _torch_replay(self, body: Callable[[], Any]) -> Callable[[int], Any]:
        import torch

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            body()
        self._kept.append(graph)
        return lambda _: graph.replay()

    def _mixed(self) -> dict[str, Burst]:
        x, y, z, numbers, launcher = self.x, self.y, self.z, self.numbers, self.launcher

        def call(i: int) -> None:
            y.add_(1)
            launcher(x, y, z, numbers[i & 1])

        bursts = {"torch's add_, then the launcher": _burst(call)}
        if not self.bench.host_only:
            replay = self._torch_replay(lambda: y.add_(1))

            def both(i: int) -> None:
                replay(i)
                launcher(x, y, z, numbers[i & 1])

            bursts["replay of torch.cuda.graph, then the launcher"] = _burst(both)
        return bursts

    def _grids(self) -> dict[str, Burst]:
        x, y, z, n, kernel = self.x, self.y, self.z, self.numbers[0], self.kernel
        return {
            "4 grids in turn": _burst(lambda i: kernel[1 + i % 4, BLOCK](x, y, z, n)),
            "32 grids in turn": _burst(lambda i: kernel[1 + i % 32, BLOCK](x, y, z, n)),
        }

    def _streams(self) -> dict[str, Burst]:
        x, y, z, numbers = self.x, self.y, self.z, self.numbers
        launchers = [self.kernel[GRID, BLOCK, 0, cl.Stream()] for _ in range(8)]
        return {
            "8 streams in turn": _burst(lambda i: launchers[i % 8](x, y, z, numbers[i & 1])),
        }

    def _threads(self) -> dict[str, Burst]:
        x, y, z, numbers = self.x, self.y, self.z, self.numbers
        launchers = [self.kernel[GRID, BLOCK, 0, cl.Stream()] for _ in range(THREADS)]

        def burst(count: int) -> int:
            def run(launcher: Any) -> None:
                for i in range(count):
                    launcher(x, y, z, numbers[i & 1])

            threads = [threading.Thread(target=run, args=(one,)) for one in launchers]
            start = perf_counter_ns()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return (perf_counter_ns() - start) // THREADS

        return {f"{THREADS} threads, a stream each": burst}

    def _kernels(self) -> dict[str, Burst]:
        if self.bench.host_only:
            raise RuntimeError("the null driver has only one kernel")
        x, y, z, numbers = self.x, self.y, self.z, self.numbers
        text = "".join(
            f'extern "C" __global__ void k{i}(float* x, float* y, float* z, int n)'
            f"{{ if (threadIdx.x < n) x[threadIdx.x] = y[threadIdx.x] * {i} + z[threadIdx.x]; }}\n"
            for i in range(KERNELS)
        )
        module = cl.load(cl.compile(text, arch="native"))
        launchers = [module[f"k{i}"][GRID, BLOCK] for i in range(KERNELS)]
        few = launchers[:100]
        return {
            f"{KERNELS} kernels in turn": _burst(
                lambda i: launchers[i % KERNELS](x, y, z, numbers[i & 1])
            ),
            "100 kernels in turn": _burst(lambda i: few[i % 100](x, y, z, numbers[i & 1])),
        }

    def _durations(self) -> dict[str, Burst]:
        if self.bench.host_only:
            raise RuntimeError("the null driver runs no kernels")
        text = (
            'extern "C" __global__ void spin(long long ns) { long long s, t;'
            'asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(s));'
            'do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)); while (t - s < ns); }'
        )
        launcher = cl.load(cl.compile(text, arch="native"))["spin"][1, 1]

        def drained(ns: int, most: int) -> Burst:
            def burst(count: int) -> int:
                start = perf_counter_ns()
                for _ in range(min(count, most)):
                    launcher(ns)
                # A launch without an array has no framework's stream.
                cl.synchronize()
                return (perf_counter_ns() - start) * count // min(count, most)

            return burst

        return {
            "kernel of 1 us, with the device": drained(1000, 1 << 20),
            "kernel of 1 ms, with the device": drained(1_000_000, 10),
        }


def _burst(call: Callable[[int], Any]) -> Burst:
    def burst(count: int) -> int:
        start = perf_counter_ns()
        for i in range(count):
            call(i)
        return perf_counter_ns() - start

    return burst


ROWS: dict[str, tuple[str, int]] = {  # the method, and the calls of a burst
    "one launch": ("_one", 256),
    "one launch, then wait": ("_waited", 64),
    "ten launches": ("_several", 32),
    "ten launches, then wait": ("_several_waited", 16),
    "explicit graph of twenty": ("_explicit", 16),
    "beside torch": ("_mixed", 128),
    "grids that change": ("_grids", 256),
    "streams": ("_streams", 256),
    "threads": ("_threads", 500),
    "kernels": ("_kernels", KERNELS),
    "durations": ("_durations", 200),
}


def measure(rows: Rows, rounds: int, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Return nanoseconds per call: row -> contender -> with graphs, without them."""
    found: dict[str, Any] = {}
    missing: list[str] = []
    for row, (method, calls) in ROWS.items():
        calls = max(2, calls // 8) if quick else calls  # noqa: PLW2901
        try:
            bursts: dict[str, Burst] = getattr(rows, method)()
        except Exception as error:  # noqa: BLE001 - named, and the others go on
            missing.append(f"{row}: {type(error).__name__}: {error}")
            continue
        for is_on in (True, False):
            cl.graph.set_graphs("auto" if is_on and not rows.bench.host_only else is_on)
            samples: dict[str, list[float]] = {name: [] for name in bursts}
            # Each kernel of many has its graph, or is refused one, after some calls of its own.
            warm_up = 12 if row == "kernels" else 2
            for index in range(rounds + warm_up):
                for name, burst in bursts.items():
                    burst(min(calls, 40))
                    taken = burst(calls) / calls
                    rows.bench.synchronize()
                    if index >= warm_up:
                        samples[name].append(taken)
            for name, times in samples.items():
                found.setdefault(row, {}).setdefault(name, []).append(median(times))
    cl.graph.set_graphs("auto")
    return found, missing


def report(found: dict[str, Any]) -> str:
    """Return the table."""
    lines = [f"{'nanoseconds per call':44} {'graphs':>10} {'plain':>10} {'ratio':>6} {'of C':>6}"]
    for row, contenders in found.items():
        lines.append(row)
        plain_c = contenders.get(PLAIN_C, [None])[0]
        for name, (on, off) in contenders.items():
            share = f"{on / plain_c:6.2f}" if plain_c else ""
            lines.append(f"  {name:42} {on:10.0f} {off:10.0f} {on / off:6.2f} {share}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--host-only", action="store_true", help="use the null driver; needs no GPU"
    )
    parser.add_argument("--quick", action="store_true", help="measure little, to see that it runs")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all measurements to this file"
    )
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="bursts per row")
    options = parser.parse_args(argv)
    os.environ.pop("CULAUNCH_GRAPHS", None)
    try:
        rows = Rows(Bench(host_only=options.host_only, cases=(MAIN,)))
    except Exception as error:  # noqa: BLE001 - it cannot run without a driver or a compiler
        print(f"cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    found, missing = measure(rows, 2 if options.quick else options.rounds, quick=options.quick)
    print(f"{rows.bench.device}, driver for CUDA {rows.bench.driver_version / 1000:g}")
    print(f"graphs: {cl.graph.graph_status()}")
    print(report(found))
    for line in missing:
        print(f"not measured: {line}")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"rows": found, "missing": missing}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
