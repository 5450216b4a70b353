"""Make the tables of pages from the JSON files of the benchmarks in docs/benchmarks.

A new run changes only one of these files. The build of the pages makes the tables, the bars, the
chart of the front page and the line that describes the machine from it.
"""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "benchmarks"
COST_NAMES = Path(__file__).parents[2] / "benchmarks" / "overhead" / "cost_names.py"
MAIN = "4"  # three tensors and an int
KERNELS = ("0", "4", "8", "19", "58")

# How a contender of launch_overhead.py is called in its table, in the order of the table.
LAUNCHES = {
    "C loop": "C loop",
    "C loop (over the CUkernel)": "C loop, over the `CUkernel`",
    "culaunch launcher (DeviceArray)": "culaunch launcher, `DeviceArray`",
    "culaunch launcher (torch, stream given)": "culaunch launcher, torch, stream given",
    "culaunch launcher (torch)": "culaunch launcher, torch",
    "culaunch kernel[grid, block] (torch)": "culaunch `kernel[grid, block]`, torch",
    "culaunch launcher (CuPy)": "culaunch launcher, CuPy",
    "cuda-core (raw pointers)": "cuda-core, addresses",
    "cuda-core (Buffer)": "cuda-core, `Buffer`",
    "TVM-FFI empty call": "TVM-FFI, empty function, torch",
    "TVM-FFI cubin launcher (driver API)": "TVM-FFI, cubin launcher (driver API), torch",
    "TVM-FFI cubin launcher (runtime API)": "TVM-FFI, cubin launcher (runtime API), torch",
    "CuPy RawKernel": "CuPy `RawKernel`",
    "Triton compiled.run": "Triton, compiled kernel's `run`",
    "Triton compiled[grid]": "Triton, compiled kernel's `[grid]`",
    "Triton jit[grid]": "Triton `jit[grid]`",
    "torch _compile_kernel": "torch `_compile_kernel`",
}
# And of triton_dispatch.py.
DISPATCH = {
    "C loop": "C loop",
    "C loop with torch's calls and the GIL": "C loop with PyTorch's calls and the GIL",
    "native[grid]": "`native[grid]`",
    "native[callable grid]": "`native[function of meta]`",
    "KernelSet[grid]": "`KernelSet[grid]`",
    "KernelSet[grid] that zeroes": "`KernelSet[grid]` that sets an array to zero",
    "install(), jit[grid]": "`jit[grid]` after `install()`",
    "install(), compiled[grid]": "`compiled[grid]` of an earlier launch, after `install()`",
    "native, autotuned": "`native[grid]`, autotuned",
    "Triton compiled[grid]": "Triton, compiled kernel's `[grid]`",
    "Triton jit[grid]": "Triton `jit[grid]`",
    "Triton jit[callable grid]": "Triton `jit[function of meta]`",
    "Triton, autotuned": "Triton, autotuned",
    "Triton, autotuned, pre_hook zeroes": "Triton, autotuned, whose `pre_hook` does the same",
}
# The same call with one of its shortcuts off.
SHORTCUTS = {
    "culaunch launcher (torch)": "with all shortcuts",
    "culaunch launcher (torch), numbers through Python's C API": "numbers through Python's C API",
    "culaunch launcher (torch), torch's exchange function": (
        "torch's tensors through its exchange function"
    ),
    "culaunch launcher (torch), attributes of torch tensors": (
        "torch's tensors through their attributes, with a check for lazy views"
    ),
    "culaunch kernel[grid, block] (torch)": "`kernel[grid, block]`, with all shortcuts",
    "culaunch kernel[grid, block] (torch), tuples through Python's C API": (
        "`kernel[grid, block]`, tuples through Python's C API"
    ),
}
_CODE = re.compile(r"\w+\[[\w, ]+\](\(\.\.\.\))?")  # in the name of a bar, what is Python
PACKAGES = ("torch", "triton", "cupy", "cuda-core", "apache-tvm-ffi")
FROM_CPP = {
    "by hand": "`cuLaunchKernelEx`, hand-written",
    "Launch": "`Launch`",
    "Launch, device said": "`Launch`, with a stream that names its device",
    "checked call": "`kernel(...)`, the checked call",
    "default stream by hand": "`cuLaunchKernelEx`, default stream",
    "checked arrays": "`kernel(...)` with three arrays",
    "default stream Launch": "`Launch`, default stream",
}


def read(name: str) -> dict[str, Any]:
    """Read ``docs/benchmarks/NAME.json``.

    Raises
    ------
    ValueError
        If it is of a smoke run, whose numbers mean little.
    """
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    if found.get("quick"):
        raise ValueError(f"{name}.json is of a run with --quick: its numbers mean little")
    return found


def medians(report: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Return the median nanoseconds of a call, by contender and kernel."""
    return {(row["contender"], row["case"]): row["median_ns"] for row in report["results"]}


def machine(name: str) -> str:
    """Return what was measured, in a sentence."""
    told = read(name)["machine"]
    versions = [
        f"{package} {version}"
        for wanted in PACKAGES
        for package, version in told["packages"].items()
        if package.startswith(wanted)
    ]
    device = told["device"]
    if told.get("kernel_driver") and told.get("driver_api"):
        device += f", driver {told['kernel_driver']} for CUDA {told['driver_api']}"
    return f"{device}; {told['cpus']} processors, {told['cpu']}; " + (
        ", ".join([told["python"], *versions]) + "."
    )


def launches(name: str) -> str:
    """Return the table of launches, in nanoseconds, without contenders that were not measured."""
    return _by_kernel("", LAUNCHES, medians(read(name)))


def dispatch(name: str) -> str:
    """Return the table of calls of Triton's kernels, by the number of their arguments."""
    return _by_kernel("", DISPATCH, medians(read(name)), ("0", "5", "19", "58"), "arguments")


def from_cpp(name: str) -> str:
    """Return the table of launches from C++, beside each call by hand."""
    found = read(name)
    found = found.get("GPU", found)
    rows = []
    for what, time in found.items():
        twin = "default stream by hand" if what.startswith("default") else "by hand"
        rows.append([FROM_CPP.get(what, what), f"{time:.0f}", f"{time / found[twin]:.3f}"])
    return table(["", "ns", "relative to `cuLaunchKernelEx`"], rows)


def counters(name: str) -> str:
    """Return the emulator's counts, with the GPU's in parentheses if they are different."""
    found = read(name)
    rows = []
    for kernel, counts in found["emulator"].items():
        cells = []
        for what, count in counts.items():
            other = found["gpu"][kernel][what]
            cells.append(f"{count:,}" + ("" if other == count else f" ({other:,})"))
        rows.append([f"`{kernel}`", *cells])
    head = ["kernel", "accesses to global memory", "sectors", "wavefronts of shared memory"]
    return table([*head, "flops"], rows)


def kernels(name: str, *wanted: str) -> str:
    """Return the table of launches of a library's kernels: the named ones, and all together."""
    launches = read(name)["launches"]
    rows = []
    for kernel in wanted:
        one = next(one for one in launches if one["kernel"] == kernel)
        above = " over ".join([*one["decorators"], "`jit`"])
        slow, quick = round(one["ns"]["Triton"]), round(one["ns"]["native"])
        rows.append(
            [f"`{kernel}`", above, f"{slow:,}", f"{quick:,}", f"{_times_less(one['ns']):.1f}"]
        )
    times_less = sorted(map(_times_less, (one["ns"] for one in launches)))
    for text, share in (("minimum", 0), ("median", len(times_less) // 2), ("maximum", -1)):
        label = f"all {len(launches)} launches, {text}"
        rows.append([label, "", "", "", f"{times_less[share]:.1f}"])
    heads = ["host time of a launch, ns", "kind", "Triton", "`install()`", "speedup"]
    return table(heads, rows)


def _times_less(ns: dict[str, float]) -> float:
    # The median over the rounds, as the bars have it; older results lack it.
    return 1 / ns.get("native / Triton", ns["native"] / ns["Triton"])


def forwards(name: str) -> str:
    """Return the table of whole forward passes, in microseconds of the host."""
    rows = []
    for operator, times in read(name)["forwards_ns"].items():
        slow, quick, least = (times.get(way) for way in ("Triton", "native", "no launch"))
        share = times.get("native / Triton", quick / slow)
        cells = [f"{slow / 1000:.0f}", f"{quick / 1000:.0f}", f"{share:.2f}"]
        if least is not None:
            cells += [f"{least / 1000:.0f}", f"{(quick - least) / (slow - least):.2f}"]
        rows.append([f"`{operator}`", *cells, *[""] * (5 - len(cells))])
    heads = ["Triton", "`install()`", "ratio", "no-op launches", "launch cost that remains"]
    return table(["host time, us", *heads], rows)


def first_calls(name: str) -> str:
    """Return the table of first calls in a fresh process, and where their time goes."""
    found = read(name)["first_calls"]
    runs = {run: one for run, one in found.items() if "profile" not in one}
    parts = {part for one in runs.values() for part in one.get("where", {})}
    slowest = sorted(parts, key=lambda part: -max(_where(one, part) for one in runs.values()))
    rows = [["total", *(f"{1000 * one['seconds']:,.0f}" for one in runs.values())]]
    for part in slowest:
        cells = (f"{1000 * _where(one, part):,.0f}" for one in runs.values())
        rows.append([part, *(cell if cell != "0" else "" for cell in cells)])
    return table(["ms", *runs], rows)


def _where(one: dict[str, Any], part: str) -> float:
    return float(one.get("where", {}).get(part, 0.0))


def shortcuts(name: str) -> str:
    """Return the table of what a launch takes without each of its shortcuts."""
    return _by_kernel("launcher, torch", SHORTCUTS, medians(read(name)))


def further(name: str) -> str:
    """Return the table of what one more argument costs, and of the parts of a launch."""
    costs = read(name)["costs_ns"]
    rows = [[text, f"{costs[key]:.1f} ns"] for key, text in _cost_names().items() if key in costs]
    return table(["", ""], rows)


def _cost_names() -> dict[str, str]:
    # The benchmarks' own names; their package is not installed where pages are built.
    found: dict[str, str] = runpy.run_path(str(COST_NAMES))["COST_NAMES"]
    return found


def breakdown(name: str) -> str:
    """Return the table of where the nanoseconds of a launch go."""
    parts = {text: time for text, time in read(name)["breakdown_ns"].items() if time > 0}
    rows = [[text, f"{time:.0f}"] for text, time in parts.items()]
    return table(["three torch tensors and an int", "ns"], rows)


def graphs(name: str) -> str:
    """Return the table of launches as graphs, beside the same with graphs off."""
    rows = []
    for what, contenders in read(name)["rows"].items():
        plain = contenders.get("plain launches in C")
        for contender, times in contenders.items():
            if not times or None in times:
                continue
            ratio = "" if plain is None else f"{times[0] / plain[0]:.2f}"
            shown = contender.replace("graph by hand", "hand-written graph")
            rows.append([what, shown, f"{times[0]:,.0f}", f"{times[1]:,.0f}", ratio])
            what = ""  # noqa: PLW2901  (said once)
    heads = ["ns", "", "graphs on", "graphs off", "on, relative to plain launches in C"]
    rule = ["---", "---", "---:", "---:", "---:"]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, rule, *rows])


def reductions(name: str) -> str:
    """Return the table of reductions in rows, with the missed targets in bold."""
    found = read(name)
    lengths = sorted({row["size"] for row in found["rows"] if _is_of_rows(row)})
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in filter(_is_of_rows, found["rows"]):
        us = row["us"]
        ratio = us["culaunch"] / us["torch.compile"]
        text = f"{us['culaunch']:.0f} ({ratio:.2f})"
        bold = f"**{text}**" if ratio > _ALLOWED else text
        cells.setdefault((row["what"], row["dtype"]), {})[row["size"]] = bold
    rows = [
        [f"{what}, {dtype}", *(row.get(length, "") for length in lengths)]
        for (what, dtype), row in cells.items()
    ]
    shown = table(["elements of a row", *(f"{length:,}" for length in lengths)], rows)
    machine = found["machine"]
    return f"On {machine['gpu']}, with torch {machine['torch']}:\n\n{shown}"


_ALLOWED = 1.03  # of torch.compile's time: what benchmarks/reductions.py allows for noise


def _is_of_rows(row: dict[str, Any]) -> bool:
    # The others are sums of whole arrays.
    return row["what"] != "sum" and {"culaunch", "torch.compile"} <= set(row["us"])


def headline(name: str) -> str:
    """Make the table of the three ratios that say the most."""
    report = read(name)
    found = {bar["name"]: bar["measured"] for bar in report["bars"]}
    ours = "culaunch launcher (torch)"
    against = {
        "C loop": "a C loop over the driver",
        "TVM-FFI cubin launcher (the faster one)": "TVM-FFI's cubin launcher",
        "Triton jit[grid]": "Triton's `jit[grid]`",
    }
    rows = [f"| {text} | {found[f'{ours} / {peer}']:.2f} |" for peer, text in against.items()]
    return "\n".join(["| relative to | ratio |", "| --- | ---: |", *rows])


def bars(name: str) -> str:
    """Return the table of targets, and whether each is met."""
    rows = []
    for bar in read(name)["bars"]:
        unit = "" if bar["unit"] == "x" else f" {bar['unit']}"
        form = {"x": "{:.3f}", "ns": "{:,.0f}", "ms": "{:.1f}", "s": "{:.2f}"}
        number = form.get(bar["unit"], "{:.0f}") + unit
        measured = bar["measured"]
        rows.append([
            _CODE.sub(r"`\g<0>`", bar["name"]),
            f"{bar['limit']:.4g}{unit}" if bar["limit"] < 1e4 else f"{bar['limit']:,.0f}{unit}",
            "" if measured is None else number.format(measured),
            {True: "met", False: "**not met**", None: "not measured"}[bar["met"]]
            + (f"; {bar['note']}" if bar.get("note") else ""),
        ])  # fmt: skip
    return table(["", "at most", "measured", ""], rows, numbers=2)


def _by_kernel(
    head: str,
    names: dict[str, str],
    found: dict[tuple[str, str], float],
    kernels: tuple[str, ...] = KERNELS,
    counted: str = "parameters",
) -> str:
    rows = []
    for contender, shown in names.items():
        times = [found.get((contender, kernel)) for kernel in kernels]
        if any(time is not None for time in times):
            rows.append([shown, *("" if time is None else f"{time:.0f}" for time in times)])
    return table([head, *kernels[:-1], f"{kernels[-1]} {counted}"], rows)


def table(head: list[str], rows: list[list[str]], numbers: int | None = None) -> str:
    """Return a Markdown table with `numbers` columns of numbers after the first, or all."""
    right = len(head) - 1 if numbers is None else numbers
    rule = ["---", *["---:"] * right, *["---"] * (len(head) - 1 - right)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])
