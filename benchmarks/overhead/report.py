"""Tables for a reader, JSON for a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from overhead.bars import Bar, bars, breakdown, costs, medians
from overhead.cases import BLOCK, CASES, GRID, MAIN, SLOPE_CASES
from overhead.cost_names import COST_NAMES
from overhead.launch_parts import PARTS

if TYPE_CHECKING:
    from overhead.timing import Plan, Trial

SCHEMA = 1


@dataclass
class Report:
    """All results of a run.

    Attributes
    ----------
    missing : list of dict
        The contenders that were not measured: contender, case (None: all cases) and reason.
    """

    host_only: bool
    quick: bool
    machine: dict[str, Any]
    plan: Plan
    trials: list[Trial]
    missing: list[dict[str, str | None]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        cost = self._costs()
        return {
            "schema": SCHEMA,
            "mode": "host-only" if self.host_only else "gpu",
            "quick": self.quick,
            "machine": self.machine,
            "method": {
                "burst": self.plan.burst,
                "warmup": self.plan.warmup,
                "rounds": self.plan.rounds,
                "grid": GRID,
                "block": BLOCK,
                "unit": "nanoseconds per call; median and tenth percentile over the bursts",
            },
            "cases": [
                {"case": c.key, "pointers": c.pointers, "ints": c.ints, "floats": c.floats}
                for c in CASES + SLOPE_CASES
            ],
            "results": [
                {
                    "contender": trial.contender,
                    "case": trial.case,
                    "median_ns": round(trial.median, 2),
                    "p10_ns": round(trial.p10, 2),
                    "bursts": len(trial.samples),
                }
                for trial in self.trials
            ],
            "missing": self.missing,
            "costs_ns": {name: round(value, 2) for name, value in cost.items()},
            "breakdown_ns": {name: round(value, 2) for name, value in self._breakdown().items()},
            "bars": [_bar_json(bar) for bar in self._bars()],
        }

    def to_text(self) -> str:
        """Return the report as tables."""
        parts = [self._heading(), self._table(), self._further(), self._bar_table()]
        if self.missing:
            lines = [
                f"  {entry['contender']}"
                + (f", {entry['case']} parameters" if entry["case"] else "")
                + f": {entry['reason']}"
                for entry in self.missing
            ]
            parts.append("Not measured\n" + "\n".join(lines))
        return "\n\n".join(parts)

    def verdict(self) -> str:
        """Return how many bars are met, in a line."""
        met = [bar.met for bar in self._bars()]
        return (
            f"bars: {met.count(True)} met, {met.count(False)} not met, "
            f"{met.count(None)} not measured"
        )

    def _costs(self) -> dict[str, float]:
        return costs(medians(self.trials))

    def _breakdown(self) -> dict[str, float]:
        return breakdown(medians(self.trials), self._costs())

    def _bars(self) -> list[Bar]:
        return bars(self.trials, self._costs(), host_only=self.host_only)

    def _heading(self) -> str:
        machine = self.machine
        packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        driver = machine["driver_api"]
        if machine["kernel_driver"] and not self.host_only:
            driver += f", kernel driver {machine['kernel_driver']}"
        return (
            f"{machine['cpus']} x {machine['cpu']}, {machine['system']}, {machine['python']}\n"
            f"{machine['device']}, driver API {driver}\n{packages}\n"
            f"{self.plan.rounds} interleaved bursts of {self.plan.burst} calls; "
            "nanoseconds per call, median (tenth percentile)"
        )

    def _table(self) -> str:
        kernels = {case.key for case in CASES}
        launches = [
            t for t in self.trials if t.case in kernels and t.contender not in PARTS.values()
        ]
        by_key = {(trial.contender, trial.case): trial for trial in launches}
        names = list(dict.fromkeys(trial.contender for trial in launches))
        names.sort(key=lambda name: _or_infinity(by_key.get((name, MAIN.key))))
        width = max((len(name) for name in names), default=10)
        heads = ["3 ptr + int" if case == MAIN else f"{case.key} params" for case in CASES]
        lines = [" " * width + "".join(f"{head:>18}" for head in heads)]
        for name in names:
            cells = (_cell(by_key.get((name, case.key))) for case in CASES)
            lines.append(f"{name:<{width}}" + "".join(f"{cell:>18}" for cell in cells))
        return "\n".join(lines)

    def _further(self) -> str:
        cost = self._costs()
        named = COST_NAMES.items()
        lines = [f"  {text:<50}{cost[key]:8.1f} ns" for key, text in named if key in cost]
        if shares := self._breakdown():
            lines.append(f"Parts of {sum(shares.values()):.0f} ns: three torch tensors and an int")
            lines += [f"  {name:<50}{value:8.1f} ns" for name, value in shares.items()]
        return "Costs\n" + "\n".join(lines)

    def _bar_table(self) -> str:
        rows = []
        for bar in self._bars():
            number = (
                f"{bar.measured:.3f}"
                if bar.unit == "x" and bar.measured is not None
                else ("-" if bar.measured is None else f"{bar.measured:.1f}")
            )
            verdict = {True: "met", False: "NOT MET", None: "not measured"}[bar.met]
            rows.append((bar.name, f"<= {bar.limit:g} {bar.unit}", f"{number} {bar.unit}", verdict))
        width = max(len(row[0]) for row in rows)
        lines = [f"  {n:<{width}}  {limit:>10}  {value:>10}  {v}" for n, limit, value, v in rows]
        return "Bars (medians of this run)\n" + "\n".join(lines)


def _bar_json(bar: Bar) -> dict[str, Any]:
    measured = None if bar.measured is None else round(bar.measured, 4)
    return {
        "name": bar.name,
        "limit": bar.limit,
        "unit": bar.unit,
        "measured": measured,
        "met": bar.met,
    }


def _cell(trial: Trial | None) -> str:
    return "-" if trial is None else f"{trial.median:.0f} ({trial.p10:.0f})"


def _or_infinity(trial: Trial | None) -> float:
    return float("inf") if trial is None else trial.median
