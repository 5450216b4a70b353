"""Diagnoses: a list of components, for reading and as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from culaunch._base.values import as_html

_MARKS = {"ok": "ok", "missing": "missing", "broken": "BROKEN"}


@dataclass(frozen=True)
class Component:
    """One thing that culaunch can use.

    Attributes
    ----------
    topic : str
        Its purpose: ``"launching"``, ``"compiling"`` ...
    name : str
    state : str
        ``"ok"``, ``"missing"`` (not installed, which may not matter) or ``"broken"`` (installed,
        but does not work).
    detail : str
        The version and place, or the reason why it is broken.
    remedy : str
        The fix: a command if possible.

    Examples
    --------
    >>> components = cl.machine.doctor().components
    >>> [component.state for component in components if component.name == "emulator"]
    ['ok']
    """

    topic: str
    name: str
    state: str
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """The result of :func:`culaunch.machine.doctor`.

    Attributes
    ----------
    components : tuple of Component
        In the order of printing.

    Examples
    --------
    >>> diagnosis = cl.machine.doctor()
    >>> for component in diagnosis.broken:
    ...     print(component.name, component.detail)
    """

    components: tuple[Component, ...]

    @property
    def broken(self) -> tuple[Component, ...]:
        """The software that is installed but does not work."""
        return tuple(component for component in self.components if component.state == "broken")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON.

        Returns
        -------
        dict
            The output of ``culaunch doctor --json``.
        """
        return {"components": [asdict(component) for component in self.components]}

    def __str__(self) -> str:
        width = max((len(component.name) for component in self.components), default=0)
        lines: list[str] = []
        topic = None
        for component in self.components:
            if component.topic != topic:
                topic = component.topic
                lines += [*([""] if lines else []), topic]
            text = component.detail
            if component.remedy:
                text = f"{text}: {component.remedy}" if text else component.remedy
            lines.append(
                f"  {component.name:<{width}}  {_MARKS[component.state]:<7}  {text}".rstrip()
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return as_html(self)
