"""The process of compare_wheels.py that has one of the wheels: rows of calls, and bursts of them.

It writes a line of JSON with its rows, and then for each line that it reads, a row's name, the
nanoseconds per call of a burst.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import triton_dispatch

from overhead import ours
from overhead.bench import Bench
from overhead.cases import CASES, MAIN
from overhead.machine import describe
from overhead.timing import Burst, python_burst

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Makers = Iterator[tuple[str, Callable[[], Burst]]]


def main() -> None:
    """Make the rows, and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("site", type=Path)
    parser.add_argument("--host-only", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    # The output of libraries must not be read as an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    bench = Bench(host_only=options.host_only)
    import culaunch

    found = Path(culaunch.__file__).resolve()
    if options.site.resolve() not in found.parents:
        raise RuntimeError(f"culaunch was imported from {found.parent}, not from the wheel")
    rows: dict[str, Burst] = {}
    missing: dict[str, str] = {}
    for name, make in makers(bench, quick=options.quick):
        try:
            burst = make()
            burst(2)
        except Exception as error:  # noqa: BLE001 - one row must not end the run
            missing[name] = f"{type(error).__name__}: {error}"
            continue
        rows[name] = burst
    gc.collect()
    gc.disable()
    first = {"rows": list(rows), "missing": missing, "machine": describe(bench)}
    print(json.dumps(first), file=answers, flush=True)
    # A burst must fit the GPU's queue of 1,024 launches.
    calls, warmup = (40, 8) if options.quick else (256, 32)
    for line in sys.stdin:
        burst = rows[line.rstrip("\n")]
        burst(warmup)
        nanoseconds = burst(calls)
        bench.synchronize()
        print(nanoseconds / calls, file=answers, flush=True)


def makers(bench: Bench, *, quick: bool) -> Makers:
    """Name every row, with the function that makes its burst."""
    yield from launches(bench, quick=quick)
    yield from triton_calls(bench, quick=quick)
    yield from elementwise_calls(bench)


def launches(bench: Bench, *, quick: bool) -> Makers:
    """Launch kernels of 0 to 58 parameters, with every kind of array."""
    table: dict[str, tuple[Any, Any]] = {
        ours.C_LOOP: (ours.c_loop, (MAIN,)),
        ours.LAUNCHER: (ours.launcher, (MAIN,) if quick else CASES),
        ours.STREAM_GIVEN: (ours.stream_given, (MAIN,)),
        ours.SUBSCRIPT: (ours.subscript, (MAIN,)),
        ours.DEVICE_ARRAYS: (ours.device_arrays, (MAIN, CASES[3])),
    }
    if not bench.host_only:
        table[ours.CUPY_ARRAYS] = (ours.cupy_arrays, (MAIN,))
    for name, (factory, cases) in table.items():
        for case in cases:
            yield f"{name}, {case.key}", lambda factory=factory, case=case: factory(bench)(case)[0]


def triton_calls(bench: Bench, *, quick: bool) -> Makers:
    """Call Triton's kernels through culaunch."""
    try:
        kernels = triton_dispatch.Kernels(bench)
        table = triton_dispatch.contenders(kernels)
    except Exception as error:  # noqa: BLE001 - the others can be measured without Triton
        print(f"Triton is not measured: {type(error).__name__}: {error}", file=sys.stderr)
        return
    names = (
        triton_dispatch.NATIVE,
        triton_dispatch.NATIVE_CALLABLE,
        triton_dispatch.NATIVE_TUNED,
        triton_dispatch.SAVED,
    )
    for name in names:
        cases, make = table[name]
        for case in cases:
            if case in ((triton_dispatch.FIVE,) if quick else triton_dispatch.SHAPES):
                yield f"{name}, {case.key}", lambda make=make, case=case: make(case)


def elementwise_calls(bench: Bench) -> Makers:
    """Add two tensors by a fused function."""
    from culaunch import elementwise as ew

    x, y, z = bench.tensors[:3]
    add = ew.fuse(lambda x, y: x + y)

    def burst(call: str) -> Burst:
        if bench.host_only:
            declare(bench, add, x, y)
        return python_burst(call, add=add, x=x, y=y, z=z)

    yield "elementwise add(x, y, out=z)", lambda: burst("add(x, y, out=z)")
    yield "elementwise add(x, y)", lambda: burst("add(x, y)")


def declare(bench: Bench, function: Any, *args: Any) -> None:
    """Tell the null driver which kernel a fused function has: it looks into no image."""
    import culaunch as cl

    image = cl.compile(function.source(*args), arch=f"sm_{bench.capability}")
    for kernel in image.kernels:
        # An older wheel may have another name for them.
        known = kernel.parameters if hasattr(kernel, "parameters") else kernel.params
        sizes = [parameter.size for parameter in known]
        array = (ctypes.c_size_t * len(sizes))(*sizes)
        bench.null.fake_driver_declare(kernel.name.encode(), len(sizes), array)


if __name__ == "__main__":
    main()
