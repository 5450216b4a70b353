"""The bars: promises, measurements, and whether they are met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from overhead import launch_parts, ours, peers, tvm
from overhead.cases import COUNTS, FLOAT_CASES, INT_CASES, MAIN, TENSOR_CASES, Case
from overhead.timing import Trial, difference, slope, slope_difference

if TYPE_CHECKING:
    from collections.abc import Mapping

Medians = dict[tuple[str, str], float]
"""Median nanoseconds per call, by contender and case."""


@dataclass(frozen=True)
class Bar:
    """One promise: ``measured`` is to be at most ``limit``, in ``unit`` ("x" or "ns").

    ``measured`` is None if a side of it is missing; ``note`` is what else is to be known.
    """

    name: str
    limit: float
    unit: str
    measured: float | None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the promise is kept; None if it was not measured."""
        return None if self.measured is None else self.measured <= self.limit


def medians(trials: list[Trial]) -> Medians:
    """Return the median of each trial."""
    return {(trial.contender, trial.case): trial.median for trial in trials if trial.samples}


def costs(found: Medians) -> dict[str, float]:
    """Return the cost of one more argument, in nanoseconds, for each kind that was measured.

    ``c_*`` is the C loop's cost: the driver copies one more parameter.
    """
    kinds = {"tensor": TENSOR_CASES, "int": INT_CASES, "float": FLOAT_CASES}
    result: dict[str, float] = {}
    for kind, cases in kinds.items():
        for prefix, contender in (("", ours.LAUNCHER), ("c_", ours.C_LOOP)):
            values = [found.get((contender, case.key)) for case in cases]
            if None not in values:
                result[f"{prefix}{kind}"] = slope(list(COUNTS), [v for v in values if v])
    for key, name in launch_parts.PARTS.items():
        if (name, MAIN.key) in found:
            result[key] = found[name, MAIN.key]
    return result


def breakdown(found: Medians, cost: Mapping[str, float]) -> dict[str, float]:
    """Return the parts of the time of a launch of the main kernel, in nanoseconds.

    The look-up of the stream is the difference to a launcher with an explicit stream. The other
    parts are measured in loops of their own. The rest is culaunch's share, with the arguments. The
    result is empty if a part is missing.
    """
    whole, floor = found.get((ours.LAUNCHER, MAIN.key)), found.get((ours.C_LOOP, MAIN.key))
    look_up = _difference(found, ours.LAUNCHER, ours.STREAM_GIVEN, MAIN)
    needed = {"gil", "loop"}
    if whole is None or floor is None or look_up is None or not needed <= set(cost):
        return {}
    shares = {
        "the driver's launch": floor,
        "looking up torch's current stream": look_up,
        "releasing and acquiring the GIL": cost["gil"],
        "Python's for loop": cost["loop"],
    }
    return {**shares, "the interpreter's call and culaunch": whole - sum(shares.values())}


def bars(trials: list[Trial], cost: Mapping[str, float], *, host_only: bool) -> list[Bar]:
    """Return every bar of a run, met or not, measured or not."""
    found = medians(trials)
    mine = ours.LAUNCHER

    def ratio(limit: float, *names: str, label: str = "") -> Bar:
        others = [found[name, MAIN.key] for name in names if (name, MAIN.key) in found]
        own = found.get((mine, MAIN.key))
        measured = own / min(others) if own is not None and others else None
        return Bar(f"{mine} / {label or names[0]}", limit, "x", measured)

    extra = difference(trials, ours.SUBSCRIPT, mine, MAIN.key)
    subscript = Bar("kernel[grid, block](...) over a configured launcher", 60, "ns", extra)
    tensor = Bar("each additional torch tensor", 15, "ns", cost.get("tensor"))
    if host_only:
        return [
            ratio(0.50, tvm.EMPTY),
            ratio(0.50, peers.CORE_RAW),
            subscript,
            tensor,
        ]
    # The driver itself copies one more parameter, which the C loop pays as well.
    cases = {case.pointers: case.key for case in TENSOR_CASES}
    net = slope_difference(trials, mine, ours.C_LOOP, cases)
    return [
        ratio(1.10, ours.C_LOOP),
        ratio(1.10, ours.C_LOOP_KERNEL),
        ratio(
            0.65,
            tvm.CUBIN_RUNTIME,
            tvm.CUBIN_DRIVER,
            label="TVM-FFI cubin launcher (the faster one)",
        ),
        ratio(0.85, peers.CORE_RAW),
        ratio(0.30, peers.TRITON_JIT),
        subscript,
        Bar("each additional torch tensor, minus the C loop's additional pointer", 15, "ns", net),
    ]


def _difference(found: Medians, one: str, other: str, case: Case) -> float | None:
    if (one, case.key) not in found or (other, case.key) not in found:
        return None
    return found[one, case.key] - found[other, case.key]
