"""Measure what culaunch.triton.install() changes for libraries that are written in Triton.

Records every launch that operators of liger-kernel and flash-linear-attention make, forward and
backward, and makes each again in either way, interleaved, as launch_overhead.py does. Outputs and
gradients are compared bit by bit first. On a GPU, with both packages installed:

    python benchmarks/triton_libraries.py --output results

Without one, ``--smoke`` runs the same on the emulator, with a Triton that launches nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libraries.launches import Launch, Ways, recorded
from libraries.operators import FIRST, FLA_OPERATORS, FORWARDS, LIGER_OPERATORS
from overhead.bars import Bar
from overhead.timing import Plan, Trial, python_burst, run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from libraries.operators import Operator

WAYS = ("Triton", "native")
SMOKE = ("swiglu", "l2norm", "softmax")


def compare(operators: Sequence[Operator], ways: Ways, device: str) -> dict[str, str]:
    """Run every operator in either way: say which outputs and gradients differ in a bit."""
    import torch

    said = {}
    for operator in operators:
        try:
            ways.use("Triton")
            operator.run(device)  # tunes
            first, second = operator.run(device), operator.run(device)
            ways.use("native")
            operator.run(device)
            native = operator.run(device)
        except Exception as error:  # noqa: BLE001 - one operator must not end the run
            said[operator.name] = f"failed: {type(error).__name__}: {error}"[:200]
            continue
        pairs = list(zip(first, second, native, strict=True))
        steady = [(a, c) for a, b, c in pairs if torch.equal(_bits(a), _bits(b))]
        wrong = sum(not torch.equal(_bits(a), _bits(c)) for a, c in steady)
        unsteady = len(pairs) - len(steady)
        said[operator.name] = f"{wrong} of {len(steady)} differ" if wrong else "equal"
        if unsteady:
            said[operator.name] += f" ({unsteady} differ between two runs of Triton)"
    return said


def record(operators: Sequence[Operator], ways: Ways, device: str) -> list[Launch]:
    """Give the launches of every operator that ran, each kind of call of a kernel once."""
    found: list[Launch] = []
    for operator in operators:
        ways.use("Triton")
        with recorded(found, operator.name):
            operator.run(device)
    return list({launch.key: launch for launch in reversed(found)}.values())[::-1]


def replay(launches: Sequence[Launch], ways: Ways, plan: Plan, wait: Callable[[], None]) -> Any:
    """Measure each launch in either way: nanoseconds by the launch's number and the way."""
    trials, missing = [], []
    for i, launch in enumerate(launches):
        burst = launch.burst()
        for way in WAYS:
            timed = ways.burst(way, burst)
            try:
                timed(2)
            except Exception as error:  # noqa: BLE001
                missing.append(f"{launch.function.__name__} ({way}): {error}"[:200])
                continue
            trials.append(Trial(way, str(i), timed))
    missing += [
        f"{trial.case} ({trial.contender}): {why}" for trial, why in run(trials, plan, wait)
    ]
    return {(int(one.case), one.contender): one.median for one in trials if one.samples}, missing


def forwards(operators: Sequence[Operator], ways: Ways, device: str, wait: Any, rounds: int) -> Any:
    """Measure the host's time of whole forward passes, in microseconds by name and way."""
    import torch
    from libraries.operators import Inputs

    found = {}
    for operator in operators:
        with torch.no_grad():
            inputs = operator.inputs(Inputs(device))
            burst = python_burst("call(*inputs)", call=operator.call, inputs=inputs)
            trials = [Trial(way, operator.name, ways.burst(way, burst)) for way in WAYS]
            run(trials, Plan(burst=10, warmup=3, rounds=rounds), wait)
        for trial in trials:
            if trial.samples:
                found[operator.name, trial.contender] = trial.median / 1000
    return found


def first_calls(way: str) -> float:
    """Give the seconds that the first calls of Liger's operators take in this process."""
    import torch

    if way == "native":
        from culaunch.triton import install

        install()
    operators = [one for one in LIGER_OPERATORS if one.name in FIRST]
    torch.zeros(1, device="cuda")
    for operator in operators:  # what is imported is not measured
        operator.inputs(_inputs("cuda"))
    start = time.perf_counter()
    for operator in operators:
        operator.run("cuda")
    torch.cuda.synchronize()
    return time.perf_counter() - start


def measure_first_calls() -> dict[str, float]:
    """Measure them in fresh processes, with a cold and then a warm cache on disk."""
    found = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory(prefix="culaunch-benchmark-") as folder:
            environment = {**os.environ, "TRITON_CACHE_DIR": folder, "CULAUNCH_CACHE_DIR": folder}
            for cache in ("cold", "warm", "warm", "warm"):
                done = subprocess.run(
                    [sys.executable, __file__, "--first-calls", way],
                    check=False, capture_output=True, text=True, env=environment,
                )  # fmt: skip
                if done.returncode:
                    print(done.stderr[-500:], file=sys.stderr)
                    continue
                seconds = float(done.stdout.split()[-1])
                key = f"{way}, {cache} cache"
                found[key] = min(seconds, found.get(key, seconds))
    return found


def c_loops(launches: Sequence[Launch], plan: Plan) -> dict[int, float]:
    """Measure a loop in C with torch's calls, for kernels of as many arguments, on a GPU."""
    from libraries.c_loops import measure

    plain = {i: one for i, one in enumerate(launches) if not one.decorators}
    try:
        return measure(plain, plan)
    except Exception as error:  # noqa: BLE001 - without a compiler there is no loop
        print(f"no C loop: {type(error).__name__}: {error}", file=sys.stderr)
        return {}


def bars(
    launches: Sequence[Launch], found: Any, loops: dict[int, float], whole: Any, first: Any
) -> list[Bar]:
    """Return every bar; ratios are native over the other, so that less is better."""
    ratios = [
        found[i, "native"] / found[i, "Triton"]
        for i in range(len(launches))
        if (i, "native") in found and (i, "Triton") in found
    ]
    over = [found[i, "native"] / loop for i, loop in loops.items() if (i, "native") in found]
    made = [
        Bar("all launches, median, native / Triton", 1 / 6, "x", _median(ratios)),
        Bar("all launches, the slowest, native / Triton", 1 / 3.5, "x", max(ratios, default=None)),
        Bar("jit alone, the slowest, native / C loop", 1.35, "x", max(over, default=None)),
    ]
    for name in FORWARDS:
        pair = [whole.get((name, way)) for way in ("native", "Triton")]
        share = pair[0] / pair[1] if None not in pair else None
        made.append(Bar(f"forward of {name}, host, native / Triton", 0.30, "x", share))
    made.append(Bar("first calls, native, warm cache", 0.7, "s", first.get("native, warm cache")))
    made.append(Bar("first calls, native, cold cache", 4.1, "s", first.get("native, cold cache")))
    return made


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--smoke", action="store_true", help="on the emulator: nothing is promised")
    parser.add_argument("--output", type=Path, help="a folder for the JSON")
    parser.add_argument("--only", action="append", help="only these operators; may be repeated")
    parser.add_argument("--first-calls", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    warnings.filterwarnings("ignore", module=r"fla|liger_kernel|torch")
    if options.first_calls:
        print(first_calls(options.first_calls))
        return 0
    if options.smoke:
        from libraries.smoke import prepare

        prepare()
    names = options.only or (SMOKE if options.smoke else None)
    operators = [
        one for one in (*LIGER_OPERATORS, *FLA_OPERATORS) if names is None or one.name in names
    ]
    device, wait = ("cpu", lambda: None) if options.smoke else ("cuda", _synchronize)
    try:
        ways = Ways()
    except Exception as error:  # noqa: BLE001 - without Triton or a driver: no run
        print(f"cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    said = compare_native(operators, ways) if options.smoke else compare(operators, ways, device)
    ran = [one for one in operators if not said[one.name].startswith("failed")]
    launches = record(ran, ways, device)
    few = options.quick or options.smoke
    rounds = 1 if options.smoke else 8 if few else 40
    plan = Plan(burst=2, warmup=1, rounds=1) if options.smoke else Plan(64, 8, rounds)
    found, missing = replay(launches, ways, plan, wait)
    named = [one for one in ran if one.name in FORWARDS]
    whole = {} if options.smoke else forwards(named, ways, device, wait, rounds)
    ways.use("native")
    loops = {} if options.smoke else c_loops(launches, plan)
    first = {} if options.smoke else measure_first_calls()
    promises = [] if options.smoke else bars(launches, found, loops, whole, first)
    _print(said, launches, found, loops, whole, first, promises, missing)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        path = options.output / "triton_libraries.json"
        path.write_text(
            json.dumps(
                _report(said, launches, found, loops, whole, first, promises, missing), indent=1
            )
            + "\n"
        )
    return 0


def compare_native(operators: Sequence[Operator], ways: Ways) -> dict[str, str]:
    """Run every operator natively alone: on the emulator Triton launches nothing."""
    ways.use("native")
    return {operator.name: _ran(operator) for operator in operators}


def _ran(operator: Operator) -> str:
    try:
        operator.run("cpu")
    except Exception as error:  # noqa: BLE001 - one operator must not end the run
        return f"failed: {type(error).__name__}: {error}"[:200]
    return "ran"


def _print(
    said: Any, launches: Any, found: Any, loops: Any, whole: Any, first: Any, promises: Any,
    missing: Any,
) -> None:  # fmt: skip
    print("outputs and gradients, bit by bit:")
    for name, words in said.items():
        print(f"  {name:34}{words}")
    print(f"{len(launches)} launches; nanoseconds a call, medians")
    head = f"  {'kernel':52}{'above it':28}{'args':>5}"
    print(f"{head}{'Triton':>10}{'native':>10}{'ratio':>8}{'C loop':>9}")
    for i, launch in enumerate(launches):
        cells = [found.get((i, way)) for way in WAYS]
        if None in cells:
            continue
        kernel = launch.function.__name__[:50]
        above = ", ".join(launch.decorators)[:26]
        count = len(launch.function.arg_names)
        loop = f"{loops[i]:9.0f}" if i in loops else ""
        print(
            f"  {kernel:52}{above:28}{count:5}{cells[0]:10.0f}{cells[1]:10.0f}"
            f"{cells[0] / cells[1]:8.2f}{loop}"
        )
    for (name, way), micros in whole.items():
        print(f"  forward of {name}, {way}: {micros:.0f} us of the host")
    for name, seconds in first.items():
        print(f"  first calls of {len(FIRST)} operators, {name}: {seconds:.2f} s")
    for bar in promises:
        shown = "not measured" if bar.measured is None else f"{bar.measured:.3g} {bar.unit}"
        met = {True: "met", False: "NOT MET", None: ""}[bar.met]
        print(f"  {bar.name}: {shown} (at most {bar.limit:.3g} {bar.unit}) {met}")
    for line in missing:
        print("  missing:", line)


def _report(
    said: Any, launches: Any, found: Any, loops: Any, whole: Any, first: Any, promises: Any,
    missing: Any,
) -> dict[str, Any]:  # fmt: skip
    from overhead.machine import versions

    return {
        "versions": versions(),
        "equal": said,
        "launches": [
            {
                "operator": launch.operator,
                "kernel": launch.function.__name__,
                "decorators": launch.decorators,
                "arguments": len(launch.function.arg_names),
                "function_as_grid": callable(launch.grid),
                "ns": {way: found.get((i, way)) for way in WAYS},
                "c_loop_ns": loops.get(i),
            }
            for i, launch in enumerate(launches)
        ],
        "forwards_us": [{"name": n, "way": w, "us": us} for (n, w), us in whole.items()],
        "first_calls_s": first,
        "bars": [{**vars(bar), "met": bar.met} for bar in promises],
        "missing": missing,
    }


def _bits(tensor: Any) -> Any:
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.detach().contiguous().view(kinds[tensor.element_size()])


def _inputs(device: str) -> Any:
    from libraries.operators import Inputs

    return Inputs(device)


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _synchronize() -> None:
    import torch

    torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
