"""Keywords that other libraries have for what has another name here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from culaunch._base.similar import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def refuse_keywords(
    function: str, unknown: Iterable[str], known: Iterable[str], others: Mapping[str, str]
) -> NoReturn:
    """Raise TypeError for keywords that a function has not, with those that were meant.

    Parameters
    ----------
    function : str
        What was called.
    unknown : iterable of str
        The keywords that it has not.
    known : iterable of str
        Those that it has.
    others : Mapping[str, str]
        What other libraries call them.
    """
    first, known = next(iter(unknown)), tuple(known)
    # A word of another library's is known, and need not resemble ours.
    meant = others.get(first)
    if meant is None:
        hint = did_you_mean(first, known)
    else:
        hint = f": did you mean {meant!r}?" if meant in known else f": give {meant}"
    listed = "" if hint else f": it takes {', '.join(known)}"
    raise TypeError(f"{function} has no keyword {first!r}{hint}{listed}")
