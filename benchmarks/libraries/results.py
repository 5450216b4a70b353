"""The results of a run, its bars and its JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from overhead.bars import Bar

from libraries.c_loops import OVER
from libraries.launches import LAUNCHES, NO_LAUNCH, SHARE, WAYS
from libraries.modes import GPU
from libraries.operators import FORWARDS


@dataclass
class Results:
    """Everything that a run found so far.

    Attributes
    ----------
    mode : str
    equal : dict
        By operator: what :func:`libraries.equal.compare` gave.
    launches : list of dict
        Each launch, "ns" by way, and "loop" if there is a loop in C.
    forwards : dict
        Nanoseconds by operator and way.
    first : dict
        By way and cache: what :func:`libraries.first_calls.first_calls` gave, of the fastest run.
    missing : list of str
    took : dict
        Seconds by part.
    """

    mode: str
    equal: dict[str, dict[str, Any]] = field(default_factory=dict)
    launches: list[dict[str, Any]] = field(default_factory=list)
    forwards: dict[str, dict[str, float]] = field(default_factory=dict)
    first: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> None:
        """Take one line of a worker."""
        kind = line.pop("kind")
        if kind == "equal":
            self.equal[line.pop("name")] = line
        elif kind == "recorded":
            self.launches = line["launches"]
        elif kind in ("replayed", "looped"):
            for i, ns in line["ns"].items():
                self.launches[int(i)]["ns" if kind == "replayed" else "loop"] = ns
        elif kind == "forwards":
            self.forwards = line["ns"]
        elif kind == "missing":
            self.missing.append(line["why"])

    @property
    def has_any(self) -> bool:
        """Whether anything was found."""
        return bool(self.launches or self.forwards or self.first or self.equal)

    def bars(self) -> list[Bar]:
        """Return every bar. Ratios are native over the other, so less is better.

        There are bars only for a GPU.
        """
        if self.mode != GPU:
            return []
        ratios = [ratio(one["ns"]) for one in self.launches if is_whole(one.get("ns"))]
        over = [over_loop(one["loop"]) for one in self.launches if "loop" in one]
        in_c = median_of([one["loop"]["C loop"] for one in self.launches if "loop" in one])
        compared = [one["said"] for one in self.equal.values() if not _is_failure(one)]
        wrong = sum(not one.startswith("equal") for one in compared) if compared else None
        went = sum(one.get("triton", 0) for one in self.equal.values()) if compared else None
        made = [
            Bar("operators with different bits", 0, "of " + str(len(compared)), wrong),
            Bar("launches of these operators through Triton", 0, "", went),
            Bar("all launches, median, native / Triton", 1 / 12, "x", median_of(ratios)),
            Bar(
                "all launches, the slowest, native / Triton",
                1 / 6,
                "x",
                max(ratios, default=None),
            ),
            Bar("plain jit, the slowest, native / C loop", 1.35, "x", max(over, default=None)),
        ]
        for name in FORWARDS:
            made += _forward_bars(name, self.forwards.get(name), in_c)
        for cache, limit in (("warm", 0.7), ("cold", 4.1)):
            seconds = self.first.get(first_name("native", cache), {}).get("seconds")
            made.append(Bar(f"first calls, native, {cache} cache", limit, "s", seconds))
        return made

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        from overhead.machine import versions

        return {
            "mode": self.mode,
            "versions": versions(),
            "equal": self.equal,
            "launches": self.launches,
            "forwards_ns": self.forwards,
            "first_calls": self.first,
            "bars": [{**vars(bar), "met": bar.met} for bar in self.bars()],
            "missing": self.missing,
            "seconds": self.took,
        }


def _forward_bars(name: str, ns: Any, in_c: float | None) -> list[Bar]:
    share = ratio(ns) if is_whole(ns) else None
    note = ""
    if share is not None and NO_LAUNCH in ns:
        least = ns[NO_LAUNCH]
        note = f"{least / ns['Triton']:.2f} without launches"
        if in_c is not None and LAUNCHES in ns:
            bare = (least + ns[LAUNCHES] * in_c) / ns["Triton"]
            note += f", {bare:.2f} with {ns[LAUNCHES]} by a loop in C"
    return [
        Bar(f"forward of {name}, host, native / Triton", 0.30, "x", share, note),
        Bar(f"forward of {name}, only the launches, native / Triton", 0.30, "x", left(ns)),
    ]


def left(ns: Any) -> float | None:
    """Return which share of what launching costs through Triton is left natively."""
    if not is_whole(ns) or NO_LAUNCH not in ns:
        return None
    return float((ns["native"] - ns[NO_LAUNCH]) / (ns["Triton"] - ns[NO_LAUNCH]))


def is_whole(ns: Any) -> bool:
    """Whether both ways were measured."""
    return ns is not None and all(way in ns for way in WAYS)


def ratio(ns: Any) -> float:
    """Return the native time over Triton's, round by round where that is known."""
    return float(ns.get(SHARE) or ns["native"] / ns["Triton"])


def over_loop(loop: Any) -> float:
    """Return the native time over the time of the loop in C, in the same way."""
    return float(loop.get(OVER) or loop["native"] / loop["C loop"])


def first_name(way: str, cache: str, *, all_configurations: bool = False) -> str:
    """Name a run of first calls."""
    return f"{way}, {cache} cache" + (", all configurations" if all_configurations else "")


def _is_failure(one: dict[str, Any]) -> bool:
    return one["said"].startswith("failed")


def median_of(values: list[float]) -> float | None:
    """Return the median; None for an empty list."""
    return median(values) if values else None
