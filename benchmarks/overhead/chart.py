"""The bar chart of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overhead.cases import CASES, MAIN
from overhead.launch_parts import PARTS

if TYPE_CHECKING:
    from pathlib import Path

    from overhead.report import Report

OURS, TWIN, PEER = "#1f6f54", "#555555", "#b9c2cc"


def write_chart(report: Report, path: Path) -> list[Path]:
    """Draw one panel of bars for each kernel, in the order of the main one.

    Parameters
    ----------
    report : Report
        What to draw.
    path : pathlib.Path
        Where; the suffix is replaced, a PNG and an SVG are written.

    Returns
    -------
    list of pathlib.Path
        The files written.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    found = {(trial.contender, trial.case): trial.median for trial in report.trials}
    kernels = {case.key for case in CASES}
    names = {trial.contender for trial in report.trials if trial.case in kernels}
    shown = [name for name in names - set(PARTS.values()) if (name, MAIN.key) in found]
    shown.sort(key=lambda name: found[name, MAIN.key], reverse=True)

    unit, scale = ("ns", 1) if report.host_only else ("µs", 1000)
    figure, panels = plt.subplots(
        1, len(CASES), figsize=(17, 0.36 * len(shown) + 1.6), sharey=True, layout="constrained"
    )
    for case, panel in zip(CASES, panels, strict=True):
        values = [found.get((name, case.key), 0) / scale for name in shown]
        drawn = panel.barh(shown, values, color=[_colour(name) for name in shown])
        digits = 0 if report.host_only else 2
        texts = [f"{value:.{digits}f}" if value else "-" for value in values]
        panel.bar_label(drawn, texts, padding=3, fontsize=8)
        panel.margins(x=0.2)
        panel.set_xlabel(f"{unit} per launch (median)")
        panel.set_title("3 pointers and an int" if case == MAIN else f"{case.count} parameters")
        panel.spines[["top", "right"]].set_visible(False)

    where = "null driver, only the host's cost" if report.host_only else report.machine["device"]
    figure.suptitle(f"Launch overhead, {where}, {report.machine['cpu']}")
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    for target in written:
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=150)
    plt.close(figure)
    return written


def _colour(name: str) -> str:
    if name.startswith("culaunch"):
        return OURS
    return TWIN if name == "C loop" else PEER
