"""How often each kernel was launched natively, how often by Triton, and why."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Any

from culaunch._base.fork_lock import ForkLock
from culaunch._base.html import html_table
from culaunch._errors import DriverNotFoundError
from culaunch._launch import graph_status


@dataclass(frozen=True)
class KernelReport:
    """The launches of one kernel.

    Attributes
    ----------
    name : str
        The kernel's module and qualified name.
    native : int
        Number of native launches.
    triton : int
        Number of launches through Triton.
    reasons : dict of str to int
        The reasons for launches through Triton, with their counts.
    notes : tuple of str
        The parts that run in Python at every call, for example decorators, and the reasons.

    Examples
    --------
    >>> from culaunch import triton
    >>> for kernel in triton.report().kernels:
    ...     print(kernel.name, kernel.native, kernel.reasons)
    """

    name: str
    native: int
    triton: int
    reasons: dict[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The launches since :func:`culaunch.triton.install`; ``print`` shows a table.

    Attributes
    ----------
    kernels : tuple of KernelReport
        The kernels that were launched, by name.
    graphs : str
        Whether repeated native launches use executable graphs, and why.

    Examples
    --------
    >>> from culaunch import triton
    >>> report = triton.report()
    >>> report.native + report.triton == sum(k.native + k.triton for k in report.kernels)
    True
    """

    kernels: tuple[KernelReport, ...]
    graphs: str = ""

    @property
    def native(self) -> int:
        """How many launches were native."""
        return sum(one.native for one in self.kernels)

    @property
    def triton(self) -> int:
        """How many launches went through Triton."""
        return sum(one.triton for one in self.kernels)

    def as_dict(self) -> dict[str, Any]:
        """Return it in a form that JSON can hold.

        Returns
        -------
        dict
            The fields of the report.
        """
        return {
            "native": self.native,
            "triton": self.triton,
            "graphs": self.graphs,
            "kernels": [
                {
                    "name": one.name,
                    "native": one.native,
                    "triton": one.triton,
                    "reasons": one.reasons,
                    "notes": list(one.notes),
                }
                for one in self.kernels
            ],
        }

    def to_json(self) -> str:
        """Return it as JSON.

        Returns
        -------
        str
            The text.
        """
        return json.dumps(self.as_dict(), indent=1)

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = [
            (one.name, one.native, one.triton, "; ".join(_remarks(one))) for one in self.kernels
        ]
        rows.append(("all", self.native, self.triton, None))
        graphs = f"graphs {self.graphs}" if self.graphs else ""
        return html_table(("kernel", "native", "Triton", "why"), rows, note=graphs)

    def __str__(self) -> str:
        if not self.kernels:
            return "no Triton kernel was launched"
        width = max(len("kernel"), *(len(one.name) for one in self.kernels))
        lines = [f"{'kernel':{width}}  {'native':>9}  {'Triton':>9}"]
        for one in self.kernels:
            lines.append(f"{one.name:{width}}  {one.native:>9}  {one.triton:>9}")
            lines += [f"    {remark}" for remark in _remarks(one)]
        lines.append(f"{'all':{width}}  {self.native:>9}  {self.triton:>9}")
        if self.graphs:
            lines.append(f"graphs {self.graphs}")
        return "\n".join(lines)


def _remarks(kernel: KernelReport) -> list[str]:
    by_triton = [f"by Triton {n} x: {reason}" for reason, n in kernel.reasons.items()]
    return by_triton + [f"in Python: {note}" for note in kernel.notes]


class Record:
    """The launch counters of the kernels with one name.

    Attributes
    ----------
    name : str
    native : array.array
        One uint64 that native code increments.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        # A buffer that native code increments without the GIL.
        self.native = array("Q", [0])
        self._reasons: Counter[str] = Counter()
        self._notes: dict[str, None] = {}
        self._lock = ForkLock()

    def fell_back(self, reason: str) -> None:
        """Count a launch that Triton made."""
        with self._lock:
            self._reasons[reason] += 1

    def note(self, text: str) -> None:
        """Add a note once."""
        self._notes[text] = None

    def clear(self) -> None:
        """Reset the counters."""
        with self._lock:
            self.native[0] = 0
            self._reasons.clear()

    @property
    def report(self) -> KernelReport:
        """Return the current counts."""
        with self._lock:
            reasons = dict(self._reasons)
        return KernelReport(
            self.name, self.native[0], sum(reasons.values()), reasons, tuple(self._notes)
        )


class Records:
    """The counters of every kernel."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def of(self, function: Any) -> Record:
        """Return the record of a JIT function. Functions with the same name share it."""
        name = f"{function.fn.__module__}.{function.fn.__qualname__}"
        return self._records.setdefault(name, Record(name))

    def report(self, *, clear: bool) -> Report:
        """Return the counts of the launched kernels."""
        records = sorted(self._records.items())
        reports = [record.report for _, record in records]
        # Clear after making the reports. A launch in between is lost: exact counting would cost
        # every launch a lock.
        if clear:
            for _, record in records:
                record.clear()
        return Report(tuple(one for one in reports if one.native or one.triton), _graphs())


def _graphs() -> str:
    try:
        return str(graph_status())
    except DriverNotFoundError:
        return ""
