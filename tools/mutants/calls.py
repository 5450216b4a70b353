"""A plugin of pytest that notes which tests run each function of the package."""

from __future__ import annotations

import collections
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import CodeType, FrameType

PACKAGE = str(Path(__file__).parents[2] / "build" / "mutants" / "site" / "culaunch") + os.sep
_RUN: set[CodeType] = set()
_CALLS: dict[str, list[tuple[float, str]]] = collections.defaultdict(list)


def _note(frame: FrameType, _event: str, _argument: object) -> None:
    _RUN.add(frame.f_code)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Look at which functions a test runs."""
    _RUN.clear()
    start = time.monotonic()
    threading.settrace(_note)
    sys.settrace(_note)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        taken = time.monotonic() - start
        for code in _RUN:
            if code.co_filename.startswith(PACKAGE):
                place = f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_firstlineno}"
                _CALLS[place].append((taken, item.nodeid))


def pytest_unconfigure() -> None:
    """Write the recorded calls."""
    Path(os.environ["CULAUNCH_CALLS"]).write_text(json.dumps(_CALLS))
