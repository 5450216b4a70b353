"""Launches and whole operators, measured in either way, interleaved and within a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from overhead.timing import Plan, Trial, python_burst, quotient, run

from libraries.launches import LAUNCHES, NO_LAUNCH, SHARE, WAYS, recorded
from libraries.operators import Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from libraries.launches import Launch, Ways
    from libraries.modes import Mode
    from libraries.operators import Operator

    Noted = Callable[[str], None]

_CHUNK = 4  # rounds between two looks at the clock


def record(
    operators: Sequence[Operator], ways: Ways, mode: Mode, until: float, missing: list[str]
) -> list[Launch]:
    """Give the launches of every operator, each kind of call of a kernel once."""
    found: list[Launch] = []
    for operator in operators:
        if time.monotonic() > until:
            missing.append(f"{operator.name}: not recorded, no time left")
            continue
        ways.use("Triton")
        try:
            with recorded(found, operator.name):
                operator.run(mode.device)
        except Exception as error:  # noqa: BLE001 - one operator must not end the run
            missing.append(f"{operator.name}: {type(error).__name__}: {error}"[:300])
    return list({launch.key: launch for launch in reversed(found)}.values())[::-1]


def replay(
    launches: Sequence[Launch], ways: Ways, mode: Mode, plan: Plan, until: float, missing: list[str]
) -> Iterator[dict[int, dict[str, float]]]:
    """Measure each launch: yield nanoseconds by its number and the way, as they get better."""
    trials = []
    for i, launch in enumerate(launches):
        burst = launch.burst()
        for way in WAYS:
            timed = ways.burst(way, burst)
            try:
                timed(2)
                mode.wait()
            except Exception as error:  # noqa: BLE001
                missing.append(f"{launch.function.__name__} ({way}): {error}"[:300])
                continue
            trials.append(Trial(way, str(i), timed))
    yield from _measured(trials, mode, plan, until, missing, int)


def measure_operators(
    operators: Sequence[Operator], ways: Ways, mode: Mode, plan: Plan, until: float,
    missing: list[str],
) -> Iterator[dict[str, dict[str, float]]]:  # fmt: skip
    """Measure the host's time of whole forward passes: yield nanoseconds by name and way.

    It also yields the time without launches, which no launcher can change, and the number of
    launches.
    """
    import torch

    trials = []
    counts: dict[str, int] = {}
    with torch.no_grad():
        for operator in operators:
            if time.monotonic() > until:
                missing.append(f"forward of {operator.name}: not measured, no time left")
                continue
            try:
                inputs = operator.inputs(Inputs(mode.device))
                burst = python_burst("call(*inputs)", call=operator.call, inputs=inputs)
                made: list[Launch] = []
                ways.use("Triton")
                with recorded(made, operator.name):
                    burst(1)
                counts[operator.name] = len(made)
                for way in (*WAYS, NO_LAUNCH):
                    timed = ways.burst(way, burst)
                    timed(3)
                    mode.wait()
                    trials.append(Trial(way, operator.name, timed))
            except Exception as error:  # noqa: BLE001
                missing.append(f"forward of {operator.name}: {error}"[:300])
        for found in _measured(trials, mode, plan, until, missing, str):
            yield {name: {**ns, LAUNCHES: counts[name]} for name, ns in found.items()}


def _measured(
    trials: list[Trial], mode: Mode, plan: Plan, until: float, missing: list[str], key: Any
) -> Iterator[Any]:
    left = plan.rounds
    while left > 0 and trials and (time.monotonic() < until or left == plan.rounds):
        rounds = min(left, _CHUNK)
        failed = run(trials, Plan(plan.burst, plan.warmup, rounds), mode.wait)
        missing += [f"{one.case} ({one.contender}): {why}"[:300] for one, why in failed]
        left -= rounds
        found: dict[Any, dict[str, float]] = {}
        for trial in trials:
            if trial.samples:
                found.setdefault(key(trial.case), {})[trial.contender] = trial.median
        for case in {trial.case for trial in trials}:
            share = quotient(trials, "native", "Triton", case)
            if share is not None:
                found[key(case)][SHARE] = share
        yield found
