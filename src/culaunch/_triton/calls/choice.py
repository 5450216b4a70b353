"""``Choice``: the choice for one launch, by decorators or their saved form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

# The result of a dispatcher's `_tune` (csrc/triton/variants/tuning.h). It has the constants, the
# options, the identities of their hooks, whether there are hooks, and the result of the launch.
# Then come the replacements of the call's arguments, whether similar calls can do without Python,
# and the blocks of descriptors by name.
Tuned = tuple[dict[str, Any], dict[str, Any], Any, bool, Any, frozenset[str], bool, dict[str, Any]]


@dataclass(frozen=True)
class Choice:
    """Settings by name."""

    # Arguments of the kernel, and options.
    constants: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    """Those that replace an argument of the call."""

    @property
    def settings(self) -> dict[str, Any]:
        """Constants and options in one."""
        return {**self.constants, **self.options}


def split_settings(
    settings: dict[str, Any], parameters: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the settings into arguments of the kernel and compile options."""
    constants = {name: value for name, value in settings.items() if name in parameters}
    options = {name: value for name, value in settings.items() if name not in parameters}
    return constants, options
