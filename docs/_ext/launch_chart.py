"""A bar chart of launch costs, for the front page: docs/benchmarks/launch_overhead.json."""

from __future__ import annotations

import html

import benchmark_numbers as numbers

# What of the contenders the front page shows, and how it is called there.
SHOWN = {
    "C loop": "C loop over the driver",
    "culaunch launcher (torch)": "culaunch launcher",
    "culaunch kernel[grid, block] (torch)": "culaunch kernel[grid, block]",
    "cuda-core (raw pointers)": "cuda.core, raw addresses",
    "TVM-FFI cubin launcher (driver API)": "TVM-FFI cubin launcher",
    "CuPy RawKernel": "CuPy RawKernel",
    "Triton jit[grid]": "Triton jit[grid]",
    "torch _compile_kernel": "torch _compile_kernel",
}


def launch_costs() -> list[tuple[str, float]]:
    """Read the microseconds of a launch with four parameters on a GPU, those measured alone."""
    found = numbers.medians(numbers.read("launch_overhead"))
    return [
        (name, found[contender, numbers.MAIN] / 1000)
        for contender, name in SHOWN.items()
        if (contender, numbers.MAIN) in found
    ]


def launch_chart() -> str:
    """Return the chart as HTML, which takes its colours from the theme of the page."""
    costs = launch_costs()
    most = max(cost for _, cost in costs)
    rows = "\n".join(
        f'<tr class="{_kind(name)}"><th scope="row">{html.escape(name)}</th>'
        f'<td><span class="bar" style="width: {cost / most:.1%}"></span>'
        f'<span class="number">{cost:.1f}</span></td></tr>'
        for name, cost in costs
    )
    device = html.escape(numbers.read("launch_overhead")["machine"]["device"])
    caption = f"Microseconds of the host for one launch: three tensors and an int, {device}"
    return f'<table class="chart"><caption>{caption}</caption><tbody>\n{rows}\n</tbody></table>'


def _kind(name: str) -> str:
    return "ours" if name.startswith("culaunch") else "floor" if "C loop" in name else "peer"
