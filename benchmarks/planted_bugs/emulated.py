"""Launch the planted bugs on the emulator, and note what it reports."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Any

import culaunch as cl
from culaunch import testing
from planted_bugs.launches import launch

if TYPE_CHECKING:
    from planted_bugs.table import Bug

# Corrected kernels run with these checks, and with the checks of their bug. Compilers compute with
# unsigned integers by signed instructions, so `check_overflow` reports some correct headers.
EVERY_CHECK = (
    "check_races",
    "check_uninitialized",
    "check_unwritten",
    "check_views",
    "check_variables",
    "check_division",
    "check_leaks",
)


def emulated(bug: Bug) -> dict[str, Any]:
    """Return the reports of the emulator on a bug and on its correction.

    ``checked`` is the report with the checks of the table, ``default`` without them, and ``fixed``
    of the correction with every check. Each is None if there was no report. For a bug that a
    profile shows, ``checked`` has the line of the profile.
    """
    limit = bug.launch.get("time_limit", 60.0)
    every = dict.fromkeys((*EVERY_CHECK, *bug.checks), True)
    if bug.profiled:
        fixed = _profile(bug, fixed=True) or _report(bug, fixed=True, time_limit=60.0, **every)
        return {"checked": _profile(bug), "default": _report(bug), "fixed": fixed}
    return {
        "checked": _report(bug, time_limit=limit, **dict.fromkeys(bug.checks, True)),
        # Without a time limit, a launch that waits forever would have no report.
        "default": None if "time_limit" in bug.launch else _report(bug, time_limit=limit),
        "fixed": _report(bug, fixed=True, time_limit=60.0, **every),
    }


def is_right(bug: Bug, report: dict[str, Any] | None) -> bool:
    """Whether a report has the kind and the place that the table declares."""
    return (
        report is not None
        and report["kind"] == bug.kind
        and report["place"].partition(":" if bug.header else "\n")[0] == bug.place
    )


def _place(position: Any) -> str:
    if position is None or position.file is None:
        return ""
    return f"{os.path.basename(position.file)}:{position.file_line}"


def _report(bug: Bug, *, fixed: bool = False, **options: Any) -> dict[str, Any] | None:
    with testing.use_driver("emulator"):
        _forget_leaks()
        try:
            with testing.emulator_options(**options):
                launch(bug, fixed=fixed)
        except cl.DriverError as error:
            report = error.report
            if report is None:  # the launch was refused before the emulator saw it
                raise
            return {
                "kind": report.kind,
                "place": _place(report.position),
                # Addresses of this process say nothing to a reader.
                "words": re.sub(r"0x[0-9a-f]{8,}", "0x...", report.message),
            }
    return None


def _profile(bug: Bug, *, fixed: bool = False) -> dict[str, Any] | None:
    """Return the first line of a profile that shows an array with unwritten bytes."""
    with testing.use_driver("emulator"):
        profile = testing.profile(launch, bug, fixed=fixed)
    for argument in profile.kernels[0].arguments:
        if 0 < argument.written_bytes < argument.size:
            return {"kind": bug.kind, "place": "", "words": str(argument)}
    return None


def _forget_leaks() -> None:
    """Report the blocks that earlier launches have left, so they are in no later report."""
    with contextlib.suppress(cl.DriverError), testing.emulator_options(check_leaks=True):
        pass
