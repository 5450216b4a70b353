"""Chart the launch costs in docs/benchmarks/launch_overhead.json for the front page and the README.

``python docs/_ext/launch_chart.py`` writes docs/launch_costs.svg, which the README shows.
"""

from __future__ import annotations

import html
from pathlib import Path

import benchmark_numbers as numbers

# The contenders on the front page, and their names there.
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
    """Read the microseconds of a launch with four parameters on a GPU."""
    found = numbers.medians(numbers.read("launch_overhead"))
    return [
        (name, found[contender, numbers.MAIN] / 1000)
        for contender, name in SHOWN.items()
        if (contender, numbers.MAIN) in found
    ]


def launch_chart() -> str:
    """Return the chart as HTML, which takes its colors from the theme of the page."""
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


def launch_svg() -> str:
    """Return the chart as an SVG for the README, with a background of its own."""
    costs = launch_costs()
    most = max(cost for _, cost in costs)
    device = html.escape(numbers.read("launch_overhead")["machine"]["device"])
    height = 34 + 24 * len(costs)
    rows = []
    for index, (name, cost) in enumerate(costs):
        top = 32 + 24 * index
        width = 360 * cost / most
        color = {"ours": "#76b900", "floor": "#57606a", "peer": "#8c959f"}[_kind(name)]
        rows += [
            f'<text x="190" y="{top + 13}" text-anchor="end">{html.escape(name)}</text>',
            f'<rect x="200" y="{top}" width="{width:.1f}" height="18" fill="{color}"/>',
            f'<text x="{206 + width:.1f}" y="{top + 13}">{cost:.1f}</text>',
        ]
    title = f"Microseconds of host time for one launch (three tensors and an int), {device}"
    body = "\n".join(rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 {height}" width="620" '
        f'height="{height}" role="img" font-family="sans-serif" font-size="13">\n'
        f"<title>{title}</title>\n"
        f'<rect width="620" height="{height}" rx="6" fill="#ffffff"/>\n'
        f'<g fill="#1f2328">\n<text x="10" y="20">{title}</text>\n{body}\n</g>\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).parents[1].joinpath("launch_costs.svg").write_text(launch_svg())
