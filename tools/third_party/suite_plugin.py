"""A plugin of pytest for a suite of others: run a sample, end it in time, record each outcome.

It reads these environment variables:

- THIRD_INTO: the file of outcomes
- THIRD_RATE: the share of the tests
- THIRD_ONLY: a file of outcomes; only its tests run
- THIRD_UNTIL: the end, in seconds since the epoch
- THIRD_CONFIGS: how many configurations each autotuner tries, if compiling all takes too long
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

_INTO = Path(os.environ["THIRD_INTO"])
_UNTIL = float(os.environ.get("THIRD_UNTIL", "inf"))
_RATE = float(os.environ.get("THIRD_RATE", "1"))
_CONFIGS = int(os.environ.get("THIRD_CONFIGS", "0"))


def _share(test: str) -> float:
    """Return a number from 0 to 1 that is always the same for a test."""
    return int(hashlib.sha256(test.encode()).hexdigest()[:8], 16) / 2**32


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample: the same one in every run, and one test at least."""
    only = os.environ.get("THIRD_ONLY")
    if only is not None:
        lines = Path(only).read_text().splitlines()
        wanted = {one["id"] for one in map(json.loads, lines) if "no time" not in one["why"]}
        kept = [one for one in items if one.nodeid in wanted]
    else:
        kept = sorted(items, key=lambda one: _share(one.nodeid))
        kept = kept[: max(1, round(len(items) * _RATE))]
    config.hook.pytest_deselected(items=[one for one in items if one not in kept])
    items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """End in time."""
    if time.time() > _UNTIL:
        pytest.skip("no time was left")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down what became of a test, at once."""
    if report.when == "call" or report.outcome != "passed":
        why = str(report.longrepr)[-1500:] if report.longrepr else ""
        with _INTO.open("a") as file:
            outcome = {"id": report.nodeid, "outcome": report.outcome, "why": why}
            file.write(json.dumps(outcome) + "\n")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write down how launches went."""
    module = sys.modules.get("culaunch.triton")
    if module is not None and session.config.getoption("--culaunch-triton"):
        _INTO.with_suffix(".report").write_text(module.report().to_json())


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Let autotuners try few configurations, where that was asked for."""
    if _CONFIGS:
        from few_configurations import few_configurations

        few_configurations(_CONFIGS)
