"""``Choice``: what was chosen for one launch, by decorators or by what was saved of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Choice:
    """What is set by name.

    Attributes
    ----------
    constants, options : dict
        Arguments of the kernel, and options.
    replaced : frozenset of str
        Those that stand in the place of what the call gave.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()

    @property
    def settings(self) -> dict[str, Any]:
        """Constants and options in one."""
        return {**self.constants, **self.options}
