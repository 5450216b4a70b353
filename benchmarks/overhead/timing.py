"""Interleaved bursts: the timed calls, their number, and the results."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from statistics import median
from time import perf_counter_ns
from typing import Any

Burst = Callable[[int], int]
"""Makes this many calls; returns their nanoseconds, with the clock read inside."""


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes
    ----------
    burst : int
        Calls between two readings of the clock. On a GPU it stays well below the launch queue's
        1024 entries: a full queue holds the caller, and then the GPU is what is measured.
    warmup : int
        Untimed calls before each burst, in which caches forget the contender before.
    rounds : int
        Bursts of each contender; each round visits all of them, in an order of its own.
    """

    burst: int
    warmup: int
    rounds: int


@dataclass
class Trial:
    """One contender with one kernel, and the time per call of each burst."""

    contender: str
    case: str
    burst: Burst
    samples: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median over the bursts, in nanoseconds per call."""
        return median(self.samples)

    @property
    def p10(self) -> float:
        """The tenth percentile over the bursts, in nanoseconds per call."""
        return sorted(self.samples)[len(self.samples) // 10]


def difference(trials: list[Trial], one: str, other: str, case: str) -> float | None:
    """Return by how many nanoseconds one contender is dearer: the median over the rounds.

    Both are measured in each round, one behind the other: what drifts during a run is in both of
    these, where it is in the difference of the medians. None if one of them is missing.
    """
    found = {trial.contender: trial.samples for trial in trials if trial.case == case}
    if not found.get(one) or not found.get(other):
        return None
    return median(a - b for a, b in zip(found[one], found[other], strict=True))


def quotient(trials: list[Trial], one: str, other: str, case: str) -> float | None:
    """Return how many times as dear one contender is as another: the median over the rounds.

    As :func:`difference`. None if one of them is missing.
    """
    found = {trial.contender: trial.samples for trial in trials if trial.case == case}
    if not found.get(one) or not found.get(other):
        return None
    return median(a / b for a, b in zip(found[one], found[other], strict=True))


def run(
    trials: list[Trial], plan: Plan, synchronize: Callable[[], None]
) -> list[tuple[Trial, str]]:
    """Measure every trial, interleaved; the ones that raise are dropped and returned.

    Parameters
    ----------
    trials : list of Trial
        Filled in place; a trial that raises is removed from the list.
    plan : Plan
        How much is measured.
    synchronize : callable
        Empties the launch queue; called before each warm-up and after each burst, untimed.

    Returns
    -------
    list of (Trial, str)
        What failed while it was measured, with the error.
    """
    failed: list[tuple[Trial, str]] = []
    shuffle = random.Random(0).shuffle  # the same order in every run
    gc.collect()
    gc.disable()
    try:
        for _ in range(plan.rounds):
            order = list(trials)
            shuffle(order)
            for trial in order:
                try:
                    trial.burst(plan.warmup)
                    nanoseconds = trial.burst(plan.burst)
                    synchronize()
                    if nanoseconds < 0:
                        raise RuntimeError(f"the C loop returned {nanoseconds}")
                except Exception as error:  # noqa: BLE001 - one contender must not end the run
                    trials.remove(trial)
                    failed.append((trial, f"{type(error).__name__}: {error}"))
                    continue
                trial.samples.append(nanoseconds / plan.burst)
    finally:
        gc.enable()
    return failed


def python_burst(call: str, /, **names: Any) -> Burst:
    """Make a burst of a Python expression, as a user would write it in a loop.

    Parameters
    ----------
    call : str
        The expression, over the names given; they are fast locals of the loop.
    """
    locals_ = "".join(f", {name}={name}" for name in names)
    source = (
        f"def burst(count{locals_}):\n"
        "    start = clock()\n"
        "    for _ in repeat(None, count):\n"
        f"        {call}\n"
        "    return clock() - start\n"
    )
    scope: dict[str, Any] = {"clock": perf_counter_ns, "repeat": repeat, **names}
    exec(source, scope)
    return scope["burst"]  # type: ignore[no-any-return]


def slope_difference(
    trials: list[Trial], one: str, other: str, cases: dict[int, str]
) -> float | None:
    """Return by how many nanoseconds one more costs a contender more than another.

    As :func:`difference`, of the slopes over the counts of `cases`. None if one is missing.
    """
    found = {(trial.contender, trial.case): trial.samples for trial in trials if trial.samples}
    keys = [(contender, case) for contender in (one, other) for case in cases.values()]
    if not all(key in found for key in keys):
        return None
    counts = list(cases)
    size = len(counts)
    return median(
        slope(counts, [*values[:size]]) - slope(counts, [*values[size:]])
        for values in zip(*(found[key] for key in keys), strict=True)
    )


def slope(counts: list[int], values: list[float]) -> float:
    """Least-squares cost of one more: the slope of values over counts."""
    mean_x, mean_y = sum(counts) / len(counts), sum(values) / len(values)
    numerator = sum((x - mean_x) * (y - mean_y) for x, y in zip(counts, values, strict=True))
    return numerator / sum((x - mean_x) ** 2 for x in counts)
