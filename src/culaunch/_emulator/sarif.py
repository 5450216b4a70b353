"""Reports as SARIF 2.1.0, which CI services show beside the lines of the source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from culaunch._core import __version__
from culaunch._emulator.report import KINDS, Position

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._emulator.report import Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_KINDS = list(KINDS)
# A kernel that the emulator cannot run may be right.
_LEVELS = {"not-emulated": "warning"}


def sarif_result(report: Report, caller: tuple[str, int] | None = None) -> dict[str, Any]:
    """Return a result of SARIF.

    Parameters
    ----------
    report : Report
        An error of a kernel.
    caller : tuple of (str, int), optional
        The file and the line of the test that launched the kernel. This is the location if the
        report has no source line, and otherwise a related location.
    """
    where = None if caller is None else Position(0, "", *caller)
    own = report.position if report.position and report.position.file else where
    related = [
        (f"the call of {name}", Position(0, "", file, line))
        for name, file, line, _ in (own.inlined if own is not None else ())
    ]
    related += [(one.message, one.position) for one in report.related if one.position is not None]
    if where is not None and own is not where:
        related.append(("the test", where))
    result: dict[str, Any] = {
        "ruleId": report.kind,
        "ruleIndex": _KINDS.index(report.kind),
        "level": _level(report.kind),
        # SARIF has no field for a line of PTX: the text has it.
        "message": {"text": str(report)},
        "locations": [_location(own, report.kernel)],
    }
    places = [(text, place) for text, place in related if place.file]
    if places:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": text}, **_location(place)}
            for number, (text, place) in enumerate(places)
        ]
    return result


def sarif_log(results: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return a log with these results, each of them once."""
    distinct: list[dict[str, Any]] = []
    for result in results:
        if result not in distinct:
            distinct.append(result)
    rules = [
        {
            "id": kind,
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": _level(kind)},
        }
        for kind, text in KINDS.items()
    ]
    driver = {"name": "culaunch emulator", "version": __version__, "rules": rules}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": distinct}],
    }


def _level(kind: str) -> str:
    return _LEVELS.get(kind, "error")


def _location(position: Position | None, kernel: str | None = None) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if position is not None and position.file is not None:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(position.file)}}
        if position.file_line:  # SARIF counts from 1; a compiler's own code has the line 0
            place["region"] = {"startLine": position.file_line}
        location["physicalLocation"] = place
    if kernel is not None:
        location["logicalLocations"] = [{"name": kernel, "kind": "function"}]
    return location


def _uri(file: str) -> str:
    """Return a path relative to the working folder, as CI services expect, or an absolute URI."""
    path = Path(os.path.abspath(file))
    try:
        return quote(path.relative_to(Path.cwd()).as_posix())
    except ValueError:
        return path.as_uri()
