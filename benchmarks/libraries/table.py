"""The table of a run, and its chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from libraries.launches import NO_LAUNCH, WAYS
from libraries.operators import FIRST
from libraries.results import is_whole, left, median_of, over_loop, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from libraries.results import Results

# Kernels whose cost was named before: microseconds through Triton, and natively at that time.
NAMED = {
    "fused_recurrent_gated_delta_rule_fwd_kernel": (54.0, 31.5),
    "chunk_gated_delta_rule_fwd_kernel_h_blockdim64": (90.4, 28.7),
    "layer_norm_fwd_kernel": (56.0, 12.3),
    "_rms_norm_forward_kernel": (19.3, 5.1),
}


def lines(results: Results) -> Iterator[str]:
    """Yield the table, line by line."""
    yield from _equal(results)
    yield from _launches(results)
    yield "slowest kernels of the previous run; microseconds"
    for kernel, (triton, native) in NAMED.items():
        rows = [
            one["ns"]
            for one in results.launches
            if one["kernel"] == kernel and is_whole(one.get("ns"))
        ]
        now = ", ".join(f"{ns['Triton'] / 1000:.1f} to {ns['native'] / 1000:.1f}" for ns in rows)
        yield f"  {kernel:52}before: {triton} to {native}; now: {now or 'not measured'}"
    title = "forward passes; microseconds on the host"
    yield f"{title:46}{'Triton':>10}{'native':>10}{'share':>8}{NO_LAUNCH:>11}{'left':>7}"
    for name, ns in results.forwards.items():
        if is_whole(ns):
            cells = f"{ns['Triton'] / 1000:10.1f}{ns['native'] / 1000:10.1f}{ratio(ns):8.2f}"
            if NO_LAUNCH in ns:
                cells += f"{ns[NO_LAUNCH] / 1000:11.1f}{left(ns):7.2f}"
            yield f"  {name:44}{cells}"
    yield from _first(results)
    for bar in results.bars():
        shown = "not measured" if bar.measured is None else f"{bar.measured:.3g} {bar.unit}"
        met = {True: "met", False: "NOT MET", None: ""}[bar.met]
        note = f"; {bar.note}" if bar.note else ""
        yield f"  {bar.name}: {shown} (at most {bar.limit:.3g} {bar.unit}) {met}{note}"
    yield from (f"  missing: {line}" for line in results.missing)
    yield "  seconds: " + ", ".join(f"{name} {s:.0f}" for name, s in results.took.items())


def draw(results: Results, path: Path) -> None:
    """Draw each launch's two times, in the order of Triton's, as an SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    found = sorted(
        (one["ns"] for one in results.launches if is_whole(one.get("ns"))),
        key=lambda ns: ns["Triton"],
    )
    figure, panel = plt.subplots(figsize=(9, 4), layout="constrained")
    for way, colour in zip(WAYS, ("#b9c2cc", "#1f6f54"), strict=True):
        values = [ns[way] / 1000 for ns in found]
        panel.scatter(range(len(values)), values, s=9, color=colour, label=way)
    panel.set(yscale="log", ylabel="µs on the host per launch", xlabel="launches of the operators")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False)
    figure.savefig(path)
    plt.close(figure)


def _equal(results: Results) -> Iterator[str]:
    yield "outputs and gradients, bit by bit; launches natively and through Triton:"
    for name, one in results.equal.items():
        counts = f"{one.get('native', 0):4} {one.get('triton', 0):4}"
        yield f"  {name:38}{counts}  {one['said']}  ({one.get('took', 0):.1f} s)"
        yield from (f"      by Triton {n} x: {why}" for why, n in one.get("reasons", {}).items())
        yield from (f"      in Python: {note}" for note in one.get("notes", ()))


def _launches(results: Results) -> Iterator[str]:
    faster = [1 / ratio(one["ns"]) for one in results.launches if is_whole(one.get("ns"))]
    summary = ""
    if faster:
        summary = f"; native is {median_of(faster):.2f} x faster, at least {min(faster):.2f}"
    yield f"{len(results.launches)} launches; nanoseconds per call, medians{summary}"
    head = f"  {'kernel':52}{'decorators':28}{'args':>5}{'Triton':>10}{'native':>10}{'ratio':>8}"
    yield f"{head}{'C loop':>9}{'native':>9}{'ratio':>7}"
    for one in results.launches:
        if is_whole(one.get("ns")):
            yield _launch(one)


def _launch(one: dict[str, Any]) -> str:
    ns = one["ns"]
    above = ", ".join(one["decorators"])[:26]
    line = (
        f"  {one['kernel'][:50]:52}{above:28}{one['arguments']:5}"
        f"{ns['Triton']:10.0f}{ns['native']:10.0f}{1 / ratio(ns):8.2f}"
    )
    if loop := one.get("loop"):
        line += f"{loop['C loop']:9.0f}{loop['native']:9.0f}{over_loop(loop):7.2f}"
    return line


def _first(results: Results) -> Iterator[str]:
    for name, found in results.first.items():
        seconds = f"{found['seconds']:.2f} s (second round: {found['again']:.3f})"
        yield f"  first calls of {len(FIRST)} operators, {name}: {seconds}"
        slowest = sorted(found["each"].items(), key=lambda pair: -pair[1])
        yield "      " + ", ".join(f"{one} {1000 * s:.0f} ms" for one, s in slowest)
        for what, s in sorted(found.get("where", {}).items(), key=lambda pair: -pair[1]):
            yield f"      {1000 * s:8.0f} ms  {what}"
        yield from (f"      {line}" for line in found.get("profile", ()))
