"""Measure the cost of a Triton kernel's launch: culaunch's native dispatch, Triton's, a C loop.

The method is the same as in launch_overhead.py: one process, interleaved bursts, medians. On a GPU:

    python benchmarks/triton_dispatch.py --output results

Without a GPU it measures only the host's cost. The driver and Triton's launcher are then no-ops:

    python benchmarks/triton_dispatch.py --host-only
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libraries.launches import Ways
from overhead import launch_parts, shortcuts
from overhead.bars import Bar
from overhead.bench import Bench
from overhead.cases import COUNTS, ELEMENTS, GRID, Case
from overhead.machine import describe
from overhead.timing import Burst, Plan, Trial, python_burst, run, slope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHAPES = (Case("0", 0), Case("5", 3, 2), Case("19", 5, 9, 5), Case("58", 14, 32, 12))
FIVE, NINETEEN = SHAPES[1], SHAPES[2]
TENSORS = tuple(Case(f"tensors{n}", n) for n in COUNTS)
INTS = tuple(Case(f"ints{n}", 1, n) for n in COUNTS)
CASES = SHAPES + TENSORS + INTS
# What heuristics set.
STACK = ("IS0", "IS1", "IS2", "SIZE")

C_LOOP, LEAST = "C loop", "C loop with torch's calls and the GIL"
NATIVE, NATIVE_CALLABLE = "native[grid]", "native[callable grid]"
NATIVE_KEYWORDS, TRITON_KEYWORDS = "native[grid], by keywords", "Triton jit[grid], by keywords"
NATIVE_TUNED, SAVED = "native, autotuned", "KernelSet[grid]"
SAVED_ZEROES, TRITON_ZEROES = "KernelSet[grid] that zeroes", "Triton, autotuned, pre_hook zeroes"
TRITON, TRITON_CALLABLE = "Triton jit[grid]", "Triton jit[callable grid]"
TRITON_TUNED, TRITON_RUN = "Triton, autotuned", "Triton compiled[grid]"
INSTALLED, INSTALLED_CALLABLE = "install(), jit[grid]", "install(), jit[callable grid]"
INSTALLED_RUN = "install(), compiled[grid]"
INSTALLED_STACK = "install(), heuristics over autotune[callable grid]"
TRITON_STACK = "Triton, heuristics over autotune[callable grid]"


class Kernels:
    """The kernels as Triton objects, their images, and bursts of every way to launch them."""

    def __init__(self, bench: Bench) -> None:
        import triton

        self.bench = bench
        self._kept: list[Any] = []
        folder = tempfile.TemporaryDirectory(prefix="culaunch-benchmark-")
        self._folder = folder
        path = Path(folder.name, "triton_dispatch_kernels.py")
        tuned = FIVE.triton.replace(f"{FIVE.name}(", "tuned(").replace(
            "):", ", UNUSED: tl.constexpr):"
        )
        constants = ", ".join(f"{name}: tl.constexpr" for name in STACK)
        stacked = tuned.replace("tuned(", "stacked(").replace("):", f", {constants}):")
        path.write_text(
            "import triton\nimport triton.language as tl\n\n\n"
            + "\n\n".join([*(case.triton for case in CASES), tuned, stacked])
        )
        spec = importlib.util.spec_from_file_location("triton_dispatch_kernels", path)
        assert spec is not None
        assert spec.loader is not None
        self.module = importlib.util.module_from_spec(spec)
        sys.modules["triton_dispatch_kernels"] = self.module
        spec.loader.exec_module(self.module)
        hidden = 2 if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 5) else 1
        self.hidden = hidden
        if bench.host_only:
            for case in [*CASES, None]:
                shape = case or FIVE
                sizes = [*shape.sizes, *[8] * hidden]
                array = (ctypes.c_size_t * len(sizes))(*sizes)
                for name in (case.name,) if case else ("tuned", "stacked"):
                    bench.null.fake_driver_declare(name.encode(), len(sizes), array)
            install_idle_driver(bench.capability)

    def jit(self, case: Case) -> Any:
        """Return the Triton object of a case."""
        return getattr(self.module, case.name)

    def tuner(self, pre_hook: Callable[[dict[str, Any]], None] | None = None) -> Any:
        """Make an autotuner of two configurations that chooses without measuring."""
        import triton

        configs = [triton.Config({"UNUSED": i}, pre_hook=pre_hook) for i in range(2)]
        return triton.autotune(
            configs, key=["i3"], do_bench=lambda call, quantiles: [call() and 0] * len(quantiles)
        )(self.module.tuned)

    def stack(self) -> Any:
        """Put heuristics above one: three that ask for None, and one that calculates."""
        import triton

        heuristics = {f"IS{i}": _is_given(f"p{i}") for i in range(3)}
        heuristics["SIZE"] = lambda args: triton.next_power_of_2(args["i3"])
        return triton.heuristics(heuristics)(
            triton.autotune(
                [triton.Config({"UNUSED": i}) for i in range(2)],
                key=["i3", "IS0"],
                do_bench=lambda call, quantiles: [call() and 0] * len(quantiles),
            )(self.module.stacked)
        )

    def arguments(self, case: Case) -> dict[str, Any]:
        """Return the arguments by name."""
        tensors = self.bench.tensors[: case.pointers]
        values = [*tensors, *case.int_values, *case.float_values]
        return dict(zip(case.names, values, strict=True))

    def call(
        self, case: Case, kernel: Any, grid: Any = (GRID,), how: str = "kernel[grid]",
        by_keywords: bool = False,
    ) -> Burst:  # fmt: skip
        """Make a burst of calls from Python."""
        arguments = self.arguments(case)
        words = [f"{name}={name}" if by_keywords else name for name in arguments]
        return python_burst(f"{how}({', '.join(words)})", kernel=kernel, grid=grid, **arguments)

    def c_loop(self, case: Case) -> Burst:
        """Launch Triton's own image from C, with the same arguments."""
        function, params, block = self._in_c(case)
        bench = self.bench

        def burst(count: int) -> int:
            return int(bench.twin.twin_launch(function, params, GRID, block, bench.stream, count))

        return burst

    def least(self, case: Case) -> Burst:
        """Do likewise, with the minimum work of any launch from Python."""
        function, params, block = self._in_c(case)
        return launch_parts.least(self.bench, case, function, params, block)

    def _in_c(self, case: Case) -> tuple[ctypes.c_void_p, Any, int]:
        from culaunch.triton import native

        bench = self.bench
        compiled = native(self.jit(case))[(GRID,)](*self.arguments(case).values())
        library, function = ctypes.c_void_p(), ctypes.c_void_p()
        code = bench.twin.twin_load(compiled.asm["cubin"], ctypes.byref(library))
        code = code or bench.twin.twin_function(
            library, compiled.metadata.name.encode(), ctypes.byref(function)
        )
        if code:
            raise RuntimeError(f"loading the image failed: {code}")
        slots: list[Any] = [
            ctypes.c_uint64(one.data_ptr()) for one in bench.tensors[: case.pointers]
        ]
        slots += [ctypes.c_int(i) for i in case.int_values]
        slots += [ctypes.c_float(f) for f in case.float_values]
        slots += [ctypes.c_uint64(0)] * self.hidden
        params = (ctypes.c_void_p * len(slots))(*(ctypes.addressof(slot) for slot in slots))
        self._kept.append(slots)  # params points into them
        return function, params, 32 * compiled.metadata.num_warps

    def saved(self, case: Case, kernel: Any = None) -> Any:
        """Compile a case ahead of time, or a kernel with its parameters."""
        import culaunch.triton as ct

        kinds = {"p": "*fp32:16", "i": "i32", "f": "fp32"}
        signature = ", ".join(kinds[name[0]] for name in case.names)
        # From Hopper on, Triton compiles for one architecture only.
        suffix = "a" if self.bench.capability >= 90 else ""
        arch = f"sm_{self.bench.capability}{suffix}"
        return ct.compile(kernel or self.jit(case), signature, arch=arch)


def contenders(kernels: Kernels) -> dict[str, tuple[Sequence[Case], Callable[[Case], Burst]]]:
    from culaunch.triton import native

    slopes = TENSORS + INTS
    ways = functools.cache(Ways)  # a culaunch that has no install() has the other rows

    def by_triton(burst: Burst) -> Burst:
        return ways().burst("Triton", burst)

    def installed(burst: Burst) -> Burst:
        return ways().burst("native", burst)

    lazy = lambda meta: (GRID,)  # noqa: E731, ARG005 - as people write it
    table: dict[str, tuple[Sequence[Case], Callable[[Case], Burst]]] = {
        C_LOOP: (SHAPES + slopes, kernels.c_loop),
        LEAST: (SHAPES + TENSORS, kernels.least),
        NATIVE: (SHAPES + slopes, lambda case: kernels.call(case, native(kernels.jit(case)))),
        NATIVE_CALLABLE: (SHAPES, lambda case: kernels.call(case, native(kernels.jit(case)), lazy)),
        NATIVE_KEYWORDS: (
            SHAPES,
            lambda case: kernels.call(case, native(kernels.jit(case)), by_keywords=True),
        ),
        NATIVE_TUNED: ((FIVE,), lambda case: kernels.call(case, native(kernels.tuner()))),
        SAVED: (SHAPES, lambda case: kernels.call(case, kernels.saved(case))),
        SAVED_ZEROES: (
            (FIVE,),
            lambda case: kernels.call(case, kernels.saved(case, kernels.tuner(_zero_first))),
        ),
        INSTALLED: (SHAPES, lambda case: installed(kernels.call(case, kernels.jit(case)))),
        INSTALLED_CALLABLE: (
            SHAPES,
            lambda case: installed(kernels.call(case, kernels.jit(case), lazy)),
        ),
        INSTALLED_STACK: (
            (FIVE,),
            lambda case: installed(kernels.call(case, kernels.stack(), lazy)),
        ),
        TRITON: (SHAPES, lambda case: by_triton(kernels.call(case, kernels.jit(case)))),
        TRITON_CALLABLE: (
            SHAPES,
            lambda case: by_triton(kernels.call(case, kernels.jit(case), lazy)),
        ),
        TRITON_KEYWORDS: (
            SHAPES,
            lambda case: by_triton(kernels.call(case, kernels.jit(case), by_keywords=True)),
        ),
        TRITON_TUNED: ((FIVE,), lambda case: by_triton(kernels.call(case, kernels.tuner()))),
        TRITON_ZEROES: (
            (FIVE,),
            lambda case: by_triton(kernels.call(case, kernels.tuner(_zero_first))),
        ),
        TRITON_STACK: ((FIVE,), lambda case: by_triton(kernels.call(case, kernels.stack(), lazy))),
    }
    for shortcut in shortcuts.NAMES:

        def longer(case: Case, shortcut: str = shortcut) -> Burst:
            return shortcuts.without(shortcut, kernels.call(case, native(kernels.jit(case))))

        table[shortcuts.name(NATIVE, shortcut)] = (SHAPES, longer)
    if not kernels.bench.host_only:

        def compiled(case: Case) -> Burst:
            ways().use("Triton")
            made = kernels.jit(case)[(GRID,)](*kernels.arguments(case).values())
            return kernels.call(case, made, (GRID, 1, 1))

        table[TRITON_RUN] = (SHAPES, lambda case: by_triton(compiled(case)))
        table[INSTALLED_RUN] = (SHAPES, lambda case: installed(compiled(case)))
    return table


def check(kernels: Kernels, case: Case, burst: Burst) -> None:
    """Launch once on a GPU and compare what the kernel wrote."""
    if kernels.bench.host_only or not case.pointers:
        return
    tensors = kernels.bench.tensors
    for index, tensor in enumerate(tensors[: case.pointers]):
        tensor.fill_(index or -1)
    if burst(1) < 0:
        raise RuntimeError("the launch failed")
    kernels.bench.synchronize()
    found = float(tensors[0][0])
    if found != case.expected:
        raise RuntimeError(f"the kernel wrote {found}, expected {case.expected}")


def _is_given(name: str) -> Callable[[dict[str, Any]], bool]:
    # As people write it: the name is in the code, and not closed over.
    return eval(f"lambda args: args[{name!r}] is not None")  # type: ignore[no-any-return]


def _zero_first(arguments: dict[str, Any]) -> None:
    arguments["p0"].zero_()


def install_idle_driver(capability: int) -> None:
    """Make Triton launch nothing, so only its own cost remains."""
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    class Utils:
        def get_device_properties(self, device: int) -> dict[str, int]:  # noqa: ARG002
            return {"max_shared_mem": 232448}

        def load_binary(self, *args: Any) -> tuple[int, int, int, int, int]:  # noqa: ARG002
            return 1, 2, 32, 0, 1024

    class Idle:
        utils = Utils()

        def launcher_cls(self, src: Any, metadata: Any) -> Any:  # noqa: ARG002
            return lambda *args: None  # noqa: ARG005

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:  # noqa: ARG002
            return 0

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", capability, 32)

    driver.set_active(Idle())


def load_time(kernels: Kernels, variants: int = 1000) -> float:
    """Return the milliseconds that loading a set of many variants takes."""
    from dataclasses import replace

    import culaunch.triton as ct

    one = kernels.saved(FIVE)
    many = tuple(replace(one.variants[0], options={"num_stages": i}) for i in range(variants))
    whole = ct.KernelSet(replace(one._saved, variants=many))  # noqa: SLF001
    samples = []
    with tempfile.TemporaryDirectory(prefix="culaunch-benchmark-") as folder:
        path = Path(folder, "many.culib")
        whole.save(path)
        for _ in range(15):
            start = time.perf_counter()
            ct.KernelSet.load(path)
            samples.append(1e3 * (time.perf_counter() - start))
    return statistics.median(samples)


def bars(found: dict[tuple[str, str], float], loading: float | None, host_only: bool) -> list[Bar]:
    def ratio(one: str, other: str, case: Case) -> float | None:
        a, b = found.get((one, case.key)), found.get((other, case.key))
        return None if a is None or b is None else a / b

    def slope_of(cases: Sequence[Case], base: str) -> float | None:
        values = [found.get((NATIVE, case.key)) for case in cases]
        bases = [found.get((base, case.key)) for case in cases]
        if None in values or None in bases:
            return None
        # The driver copies one more parameter in both.
        pairs = zip(values, bases, strict=True)
        return slope(list(COUNTS), [(a or 0) - (b or 0) for a, b in pairs])

    exchange = found.get((launch_parts.EXCHANGE, FIVE.key))
    tensor = slope_of(TENSORS, C_LOOP)
    over = None if exchange is None or tensor is None else tensor - exchange
    # Between launches, as here, the exchange function takes longer than in a loop of its own: both.
    both = [
        Bar("one more int", 12, "ns", slope_of(INTS, C_LOOP)),
        Bar("one more tensor, over the exchange function", 15, "ns", slope_of(TENSORS, LEAST)),
        Bar("the same, over that function in a separate loop", 15, "ns", over),
        Bar("loading 1,000 variants", 20, "ms", loading),
    ]
    if host_only:
        share = ratio(NATIVE, TRITON, NINETEEN)
        return [Bar("19 arguments, of Triton's own cost", 0.08, "x", share), *both]
    return [
        Bar("5 arguments, of the C loop", 1.2, "x", ratio(NATIVE, C_LOOP, FIVE)),
        Bar("5 arguments, of Triton jit[grid]", 1 / 3, "x", ratio(NATIVE, TRITON, FIVE)),
        Bar("19 arguments, of Triton jit[grid]", 1 / 4, "x", ratio(NATIVE, TRITON, NINETEEN)),
        *both,
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--host-only", action="store_true", help="use the null driver; needs no GPU"
    )
    parser.add_argument("--quick", action="store_true", help="measure little, to see that it runs")
    parser.add_argument("--output", type=Path, help="write the JSON to this folder")
    options = parser.parse_args(argv)
    try:
        bench = Bench(host_only=options.host_only, cases=())
        kernels = Kernels(bench)
    except Exception as error:  # noqa: BLE001 - without a driver, a compiler or Triton: no run
        print(f"cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    plan = Plan(burst=256, warmup=32, rounds=3 if options.quick else 120)
    trials, missing = [], []
    for name, (cases, make) in contenders(kernels).items():
        for case in [one for one in cases if not options.quick or one in SHAPES[:2]]:
            try:
                burst = make(case)
                check(kernels, case, burst)
                burst(2)
            except Exception as error:  # noqa: BLE001 - one contender must not end the run
                missing.append((name, case.key, f"{type(error).__name__}: {error}"))
                continue
            trials.append(Trial(name, case.key, burst))
    try:
        burst, _ = launch_parts.exchange(bench)(FIVE)
        trials.append(Trial(launch_parts.EXCHANGE, FIVE.key, burst))
    except Exception as error:  # noqa: BLE001
        missing.append((launch_parts.EXCHANGE, FIVE.key, f"{type(error).__name__}: {error}"))
    for trial, reason in run(trials, plan, bench.synchronize):
        missing.append((trial.contender, trial.case, reason))
    found = {(trial.contender, trial.case): trial.median for trial in trials if trial.samples}
    loading = load_time(kernels, 50 if options.quick else 1000)
    promises = bars(found, loading, options.host_only)
    print(f"{bench.device}, {ELEMENTS} elements per array; nanoseconds per call, medians")
    for name in dict.fromkeys(trial.contender for trial in trials):
        cells = [
            f"{case.key}: {found[name, case.key]:8.0f}"
            for case in SHAPES
            if (name, case.key) in found
        ]
        print(f"  {name:46}{'  '.join(cells)}")
    more = {
        name: slope(list(COUNTS), [found.get((name, case.key), 0.0) for case in TENSORS])
        for name in (C_LOOP, LEAST, NATIVE)
    }
    print("  one more tensor:", ", ".join(f"{name} {cost:.1f}" for name, cost in more.items()))
    for bar in promises:
        shown = "not measured" if bar.measured is None else f"{bar.measured:.3g} {bar.unit}"
        print(f"  {bar.name}: {shown} (at most {bar.limit:.3g} {bar.unit}): {bar.met}")
    for entry in missing:
        print("  missing:", *entry)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        name = "triton_dispatch_host" if options.host_only else "triton_dispatch"
        report = {
            "machine": describe(bench),
            "plan": vars(plan),
            "results": [{"contender": a, "case": b, "median_ns": c} for (a, b), c in found.items()],
            "bars": [{**vars(bar), "met": bar.met} for bar in promises],
            "missing": missing,
        }
        (options.output / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
