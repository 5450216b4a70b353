"""One request, as whoever asks for it describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Task:
    """One request."""

    run: Callable[..., Any]
    """At the top of a module, so that it can be pickled; it gets the arguments by name."""
    arguments: Mapping[str, Any]
    label: str
    """What messages call it: ``request 3 of compile_many (scale.cu)``."""
    shared: Mapping[str, Shared] = field(default_factory=dict)
    """Arguments that are sent once to each worker."""


@dataclass(frozen=True)
class Shared:
    """An argument that many tasks have in common."""

    digest: str
    """What stands for its contents."""
    value: Any
