"""Launch the planted bugs on a GPU, alone and under the tools of compute-sanitizer.

Each bug runs in a process of its own, because a fault ends the context. Corrections fault in no
process, so those of one source share one.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from planted_bugs.launches import image_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planted_bugs.table import Bug

# "GPU" is the driver without a tool. It reports the errors that the hardware finds.
TOOLS = ("GPU", "memcheck", "racecheck", "initcheck", "synccheck")
LIMIT = 25  # seconds: a launch under a tool needs fewer, unless it hangs
ERROR = "the driver reports "  # the script prints this before the name of an error
_SCRIPT = Path(__file__).parents[1] / "planted_bugs.py"
# Lines of the tools that are no report about the kernel.
_OTHER = re.compile(
    r"COMPUTE-SANITIZER|SUMMARY|Target application|Program hit|Saved host backtrace|Host Frame|"
    r"No attachable|Error: process didn't|"
    # The process keeps its own memory until its end; a leak of a kernel is on the device heap.
    r"^Leaked [\d,]+ bytes at \w+$"
)
_PLACE = re.compile(r"([\w./-]+\.(?:cuh?|hp?p?)):(\d+)")


class _Job(NamedTuple):
    tool: str
    bugs: tuple[Bug, ...]
    fixed: bool


def sanitized(bugs: Sequence[Bug]) -> dict[str, dict[str, Any]]:
    """Return for each bug the reports of the tools, and of those on the corrections of its source.

    The key of a tool has ``words``, the first line of its first report or an empty text, ``place``,
    and ``is_right``: whether a report names the place of the table. ``fixed`` has the words of each
    tool on the corrected kernels of the source.
    """
    sources = dict.fromkeys(bug.source for bug in bugs)
    for source in sources:  # the processes find them in the cache
        image_of(source, fixed=False)
        image_of(source, fixed=True)
    jobs = [_Job(tool, (bug,), fixed=False) for bug in bugs for tool in TOOLS]
    jobs += [
        _Job(tool, tuple(bug for bug in bugs if bug.source == source), fixed=True)
        for source in sources
        for tool in TOOLS
    ]
    # Kernels that wait forever share the GPU with the others: they come last.
    jobs.sort(key=lambda job: not job.fixed and "time_limit" in job.bugs[0].launch)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = list(pool.map(_run, jobs))
    found: dict[str, dict[str, Any]] = {bug.name: {"fixed": {}} for bug in bugs}
    for job, text in zip(jobs, texts, strict=True):
        for bug in job.bugs:
            if job.fixed:
                found[bug.name]["fixed"][job.tool] = read_report(text, "")["words"]
            else:
                found[bug.name][job.tool] = read_report(text, bug.place)
    return found


def read_report(text: str, place: str) -> dict[str, Any]:
    """Read the output of a tool: its first report, and whether any report names a place."""
    reports: list[list[str]] = []
    starts = True
    for line in text.splitlines():
        if not line.startswith("========="):
            continue
        words = line.strip("=").strip()
        if not words:
            starts = True
        elif _OTHER.search(words):
            continue
        elif starts:
            reports.append([words])
            starts = False
        else:
            reports[-1].append(words)
    if not reports:
        return {"words": "", "place": "", "is_right": False}
    places = [
        f"{os.path.basename(file)}:{line}"
        for report in reports
        for file, line in _PLACE.findall("\n".join(report))
    ]
    first = _PLACE.search("\n".join(reports[0]))
    named = [one.partition(":")[0] for one in places] if ":" not in place else places
    return {
        "words": reports[0][0],
        "place": f"{os.path.basename(first[1])}:{first[2]}" if first else "",
        "is_right": place in named,
    }


def _run(job: _Job) -> str:
    command = [sys.executable, str(_SCRIPT), "--launch", *(bug.name for bug in job.bugs)]
    if job.fixed:
        command.append("--fixed")
    if job.tool == "GPU":
        return _output(command).replace(ERROR, "=========\n========= ")
    # Leaks are looked for only where one is planted: the process keeps memory until its end.
    leaks = job.tool == "memcheck" and any(bug.kind == "leak" for bug in job.bugs)
    options = ["--leak-check", "full"] if leaks else []
    return _output(["compute-sanitizer", "--tool", job.tool, *options, *command])


def _output(command: list[str]) -> str:
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            text = process.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return f"{process.communicate()[0]}\n=========\n========= no end within {LIMIT} s\n"
    if "Traceback (most recent call last)" in text:
        # After the reports, if there are any: a process that failed on its own has found nothing.
        text += f"\n=========\n========= failed: {text.rstrip().splitlines()[-1]}\n"
    return text
