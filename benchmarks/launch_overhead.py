"""Measure the cost of a kernel launch: culaunch, a C loop, and other ways from Python.

All contenders run in one process, in interleaved bursts that fit the launch queue. The device is
synchronized outside the clock. Results are medians and tenth percentiles. A contender that is
missing or fails is named with the reason and does not stop the others. docs/benchmarks.md explains
the method.

    python benchmarks/launch_overhead.py --output results
    python benchmarks/launch_overhead.py --host-only
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from overhead import launch_parts, ours, peers, shortcuts, tvm
from overhead.bench import Bench
from overhead.cases import CASES, MAIN, QUICK_CASES, SLOPE_CASES, Case
from overhead.chart import write_chart
from overhead.machine import describe
from overhead.report import Report
from overhead.timing import Plan, Trial, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Factory = Callable[[Bench], Callable[[Case], ours.Made]]

HOST_CONTENDERS: dict[str, tuple[Factory, Sequence[Case]]] = {
    ours.C_LOOP: (ours.c_loop, CASES + SLOPE_CASES),
    ours.C_LOOP_KERNEL: (ours.c_loop_kernel, CASES),
    ours.LAUNCHER: (ours.launcher, CASES + SLOPE_CASES),
    ours.STREAM_GIVEN: (ours.stream_given, CASES),
    ours.SUBSCRIPT: (ours.subscript, CASES),
    ours.DEVICE_ARRAYS: (ours.device_arrays, CASES),
    **{
        shortcuts.name(ours.LAUNCHER, one): (shortcuts.made_without(one), CASES)
        for one in ("numbers", "places", "torch")
    },
    tvm.EMPTY: (tvm.empty, CASES),
    tvm.CUBIN_DRIVER: (tvm.cubin_driver, CASES),
    peers.CORE_RAW: (peers.core_raw, CASES),
    peers.CORE_BUFFER: (peers.core_buffer, CASES),
    launch_parts.EXCHANGE: (launch_parts.exchange, (MAIN,)),
    launch_parts.WORK_STREAM: (launch_parts.work_stream, (MAIN,)),
    launch_parts.GIL: (launch_parts.gil, (MAIN,)),
    launch_parts.LOOP: (launch_parts.loop, (MAIN,)),
}
GPU_CONTENDERS: dict[str, tuple[Factory, Sequence[Case]]] = {
    **HOST_CONTENDERS,
    ours.CUPY_ARRAYS: (ours.cupy_arrays, CASES),
    tvm.CUBIN_RUNTIME: (tvm.cubin_runtime, CASES),
    peers.CUPY: (peers.cupy_raw, CASES),
    peers.TRITON_JIT: (peers.triton_jit, CASES),
    peers.TRITON_COMPILED: (peers.triton_compiled, CASES),
    peers.TRITON_RUN: (peers.triton_run, CASES),
    peers.TORCH: (peers.torch_compiled, CASES),
}


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    try:
        cases = QUICK_CASES if options.quick else CASES
        bench = Bench(host_only=options.host_only, cases=cases)
    except Exception as error:  # noqa: BLE001 - it cannot run without a driver or a compiler
        print(f"cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        if not options.host_only:
            print("found no GPU; --host-only measures only the host's cost", file=sys.stderr)
        return 1
    if options.host_only:
        plan = Plan(burst=400, warmup=50, rounds=300)
    else:
        plan = Plan(burst=256, warmup=32, rounds=150)
    if options.quick:
        plan = Plan(burst=plan.burst // 4, warmup=8, rounds=3)
    plan = Plan(options.burst or plan.burst, plan.warmup, options.rounds or plan.rounds)

    table = HOST_CONTENDERS if options.host_only else GPU_CONTENDERS
    trials, missing = prepare(bench, table)
    for trial, reason in run(trials, plan, bench.synchronize):
        missing.append({"contender": trial.contender, "case": trial.case, "reason": reason})
    report = Report(options.host_only, options.quick, describe(bench), plan, trials, missing)
    print(report.to_text())
    json_path, chart_path = options.json, options.chart
    if options.output:
        name = "launch_overhead_host" if options.host_only else "launch_overhead"
        json_path = json_path or options.output / f"{name}.json"
        chart_path = chart_path or options.output / f"{name}.png"
    if json_path:
        json_path.parent.mkdir(parents=True, exist_ok=True)
        json_path.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    if chart_path:
        try:
            write_chart(report, chart_path)
        except ImportError as error:  # the numbers are there anyway
            print(f"\nno chart: {error} (pip install matplotlib)")
    print(f"\n{report.verdict()}")
    return 0


def prepare(
    bench: Bench, table: dict[str, tuple[Factory, Sequence[Case]]]
) -> tuple[list[Trial], list[dict[str, str | None]]]:
    """Build and check one trial for each contender and kernel.

    Returns
    -------
    (list of Trial, list of dict)
        The trials that can be measured, and those that cannot: contender, case (None: all) and
        reason.
    """
    trials: list[Trial] = []
    missing: list[dict[str, str | None]] = []
    for contender, (factory, cases) in table.items():
        try:
            make = factory(bench)
        except Exception as error:  # noqa: BLE001 - a missing peer is named, whatever it lacks
            missing.append({"contender": contender, "case": None, "reason": _reason(error)})
            continue
        wanted = [case for case in cases if case in bench.cases or case in SLOPE_CASES]
        failures: list[dict[str, str | None]] = []
        for case in wanted:
            try:
                burst, pointers = make(case)
                if pointers is not None:
                    bench.check(case, burst, pointers)
                burst(1)
            except Exception as error:  # noqa: BLE001
                reason = _reason(error)
                failures.append({"contender": contender, "case": case.key, "reason": reason})
                continue
            trials.append(Trial(contender, case.key, burst))
        if len(failures) == len(wanted) and len({entry["reason"] for entry in failures}) == 1:
            failures = [{**failures[0], "case": None}]
        missing += failures
    return trials, missing


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text[:2000]}" if text else type(error).__name__


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--host-only",
        action="store_true",
        help="measure only the host's cost, on the null driver; needs no GPU",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="measure little, to see that it runs; the numbers mean nothing",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write the JSON and the chart to this folder"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write all measurements to this file"
    )
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write FILE.png and FILE.svg")
    parser.add_argument("--burst", type=int, metavar="CALLS", help="calls between clock readings")
    parser.add_argument("--rounds", type=int, metavar="N", help="bursts per contender")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
