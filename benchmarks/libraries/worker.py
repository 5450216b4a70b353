"""The work of one process of a run: one part, with its findings as lines of JSON in a file."""

from __future__ import annotations

import functools
import json
import time
from typing import TYPE_CHECKING, Any

from overhead.timing import Plan

from libraries.equal import compare
from libraries.first_calls import first_calls
from libraries.launches import Ways
from libraries.modes import GPU, SMOKE, Mode, prepare
from libraries.operators import FLA_OPERATORS, LIGER_OPERATORS
from libraries.replays import measure_operators, record, replay

if TYPE_CHECKING:
    from pathlib import Path


class Worker:
    """One part of a run, in this process.

    Parameters
    ----------
    into : pathlib.Path
        The findings are appended to it as lines, so they survive the end of the process.
    mode : str
    names : list of str
        The operators.
    seconds : float
        The time limit.
    quick : bool
        Measure few rounds.
    configs : int
        See :func:`libraries.modes.prepare`.
    """

    def __init__(
        self, into: Path, mode: str, names: list[str], seconds: float, *, quick: bool, configs: int
    ) -> None:
        self._until = time.monotonic() + seconds
        self._into = into
        self._quick = quick
        self._mode: Mode = prepare(mode, configs)
        self._operators = [one for one in (*LIGER_OPERATORS, *FLA_OPERATORS) if one.name in names]
        self._missing: list[str] = []

    def run(self, part: str) -> None:
        """Do it."""
        try:
            getattr(self, f"_{part}")()
        finally:
            while self._missing:
                self._write("missing", why=self._missing.pop(0))

    @functools.cached_property
    def _ways(self) -> Ways:
        return Ways()

    def _equal(self) -> None:
        ways = self._ways
        for operator in self._operators:
            start = time.perf_counter()
            try:
                found = compare(operator, ways, self._mode)
            except Exception as error:  # noqa: BLE001 - one operator must not end the run
                found = {"said": f"failed: {type(error).__name__}: {error}"[:300]}
            self._write("equal", name=operator.name, took=time.perf_counter() - start, **found)

    def _replay(self) -> None:
        start = time.monotonic()
        ways = self._ways
        half = start + (self._until - start) / 2
        launches = record(self._operators, ways, self._mode, half, self._missing)
        self._write(
            "recorded", took=time.monotonic() - start, launches=[_row(one) for one in launches]
        )
        with_loops = self._mode.name == GPU
        end = self._until - (8 if with_loops else 0)
        for found in replay(launches, ways, self._mode, self._plan(128, 40), end, self._missing):
            self._write("replayed", ns=found)
        if with_loops:
            self._c_loops(launches, ways)

    def _c_loops(self, launches: Any, ways: Ways) -> None:
        from libraries.c_loops import measure

        alone = {i: one for i, one in enumerate(launches) if not one.decorators}
        try:
            bursts = {i: ways.burst("native", one.burst()) for i, one in alone.items()}
            self._write("looped", ns=measure(alone, bursts, self._plan(128, 40)))
        except Exception as error:  # noqa: BLE001 - there is no loop without a compiler
            self._missing.append(f"no C loop: {type(error).__name__}: {error}"[:300])

    def _forwards(self) -> None:
        found = measure_operators(
            self._operators, self._ways, self._mode, self._plan(10, 20), self._until, self._missing
        )
        for ns in found:
            self._write("forwards", ns=ns)

    def _first_native(self) -> None:
        self._write("first", **first_calls("native", self._mode))

    def _first_triton(self) -> None:
        self._write("first", **first_calls("Triton", self._mode))

    def _first_profile(self) -> None:
        self._write("first", **first_calls("native", self._mode, profile=True))

    def _plan(self, burst: int, rounds: int) -> Plan:
        if self._mode.name == SMOKE:
            return Plan(burst=2, warmup=1, rounds=1)
        # A warm-up like that in launch_overhead.py, if there is time.
        return Plan(burst, max(2, min(32, burst // 2)), 4 if self._quick else rounds)

    def _write(self, kind: str, **found: Any) -> None:
        with self._into.open("a") as file:
            file.write(json.dumps({"kind": kind, **found}) + "\n")


def _row(launch: Any) -> dict[str, Any]:
    return {
        "operator": launch.operator,
        "kernel": launch.function.__name__,
        "decorators": launch.decorators,
        "arguments": len(launch.function.arg_names),
        "function_as_grid": callable(launch.grid),
    }
