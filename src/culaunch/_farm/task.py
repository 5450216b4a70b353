"""One request, as its caller describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Task:
    """One request."""

    run: Callable[..., Any]
    """A function at the top level of a module, which can be pickled. It gets the arguments by name.
    """
    arguments: Mapping[str, Any]
    label: str
    """The name in messages: ``request 3 of compile_many (scale.cu)``."""
    shared: Mapping[str, Shared] = field(default_factory=dict)
    """Arguments that are sent once to each worker."""


@dataclass(frozen=True)
class Shared:
    """An argument that many tasks have in common."""

    digest: str
    """The digest of its contents."""
    value: Any
