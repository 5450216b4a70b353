"""A function as it is exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from culaunch._function.declarations.declaration import Declared
    from culaunch._function.programs.program import Tree
    from culaunch._function.tracing.kinds import Kind


class Exported(NamedTuple):
    """A function as it is exported.

    Attributes
    ----------
    declaration : Declaration
        Its parameters.
    programs : tuple
        Kinds of arguments, and the programs for them.
    body : function or None
        The Python that it is of; None: there is none any more.
    origin : str
        Where it comes from, in words.
    doc : str or None
    """

    declaration: Declared
    programs: tuple[tuple[Kind, Tree], ...]
    body: Any
    origin: str
    doc: str | None
