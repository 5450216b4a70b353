"""A bar chart of launch costs, drawn from the table in docs/benchmarks.md that has the numbers."""

from __future__ import annotations

import html
import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "benchmarks.md"
# What of the table the front page shows, and how it is called there.
SHOWN = {
    "C loop": "C loop over the driver",
    "culaunch launcher, torch": "culaunch launcher",
    "culaunch `kernel[grid, block]`, torch": "culaunch kernel[grid, block]",
    "cuda-core, addresses": "cuda.core, raw addresses",
    "TVM-FFI, cubin launcher (driver API), torch": "TVM-FFI cubin launcher",
    "CuPy `RawKernel`": "CuPy RawKernel",
    "Triton `jit[grid]`": "Triton jit[grid]",
    "torch `_compile_kernel`": "torch _compile_kernel",
}


def launch_costs() -> list[tuple[str, float]]:
    """Read the microseconds of a launch with four parameters on an H100, from the page's table."""
    section = PAGE.read_text().partition("### On an H100")[2]
    rows = dict(re.findall(r"^\| (.+?) \| +\d+ \| +(\d+) \|", section, re.MULTILINE))
    return [(name, int(rows[row]) / 1000) for row, name in SHOWN.items()]


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
    caption = "Microseconds of the host for one launch: three tensors and an int, on an H100"
    return f'<table class="chart"><caption>{caption}</caption><tbody>\n{rows}\n</tbody></table>'


def _kind(name: str) -> str:
    return "ours" if name.startswith("culaunch") else "floor" if name == "C loop" else "peer"
