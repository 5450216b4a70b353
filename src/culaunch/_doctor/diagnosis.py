"""What was found: a list of findings, for reading and as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from culaunch._base.values import as_html

_MARKS = {"ok": "ok", "missing": "missing", "broken": "BROKEN"}


@dataclass(frozen=True)
class Finding:
    """One thing that culaunch can use.

    Attributes
    ----------
    topic : str
        What it is for: ``"launching"``, ``"compiling"`` ...
    name : str
    state : str
        ``"ok"``, ``"missing"`` (it is not there, which need not matter) or ``"broken"`` (it is
        there and does not work).
    detail : str
        The version and place, or the reason why it is broken.
    remedy : str
        The fix: a command if possible.

    Examples
    --------
    >>> [finding.state for finding in cl.doctor().findings if finding.name == "emulator"]
    ['ok']
    """

    topic: str
    name: str
    state: str
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The result of :func:`culaunch.doctor`.

    Attributes
    ----------
    findings : tuple of Finding
        In the order of printing.

    Examples
    --------
    >>> diagnosis = cl.doctor()
    >>> for finding in diagnosis.broken:
    ...     print(finding.name, finding.detail)
    """

    findings: tuple[Finding, ...]

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The software that is installed but does not work."""
        return tuple(finding for finding in self.findings if finding.state == "broken")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {"findings": [asdict(finding) for finding in self.findings]}

    def __str__(self) -> str:
        width = max((len(finding.name) for finding in self.findings), default=0)
        lines: list[str] = []
        topic = None
        for finding in self.findings:
            if finding.topic != topic:
                topic = finding.topic
                lines += [*([""] if lines else []), topic]
            text = finding.detail
            if finding.remedy:
                text = f"{text}: {finding.remedy}" if text else finding.remedy
            lines.append(f"  {finding.name:<{width}}  {_MARKS[finding.state]:<7}  {text}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_html(self)
