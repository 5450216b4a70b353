"""A function in exported form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from culaunch._function.declarations.declaration import Declaration
    from culaunch._function.programs.program import Tree
    from culaunch._function.tracing.kinds import Kind


class Exported(NamedTuple):
    """A function in exported form."""

    declaration: Declaration
    """Its parameters."""
    programs: tuple[tuple[Kind, Tree], ...]
    """Kinds of arguments, and the programs for them."""
    body: Any
    """Its Python function; None if that no longer exists."""
    origin: str
    """A description of its origin."""
    doc: str | None
