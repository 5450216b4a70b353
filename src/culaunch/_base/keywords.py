"""Keywords of other libraries, and their names in culaunch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from culaunch._base.similar import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def refuse_keywords(
    function: str, unknown: Iterable[str], known: Iterable[str], others: Mapping[str, str]
) -> NoReturn:
    """Raise TypeError for unknown keywords, with the keywords that were probably meant.

    Parameters
    ----------
    function : str
        The called function.
    unknown : iterable of str
        The keywords that it does not have.
    known : iterable of str
        Its keywords.
    others : Mapping[str, str]
        The names of its keywords in other libraries.
    """
    first, known = next(iter(unknown)), tuple(known)
    # A word of another library is known, and may not resemble culaunch's word.
    meant = others.get(first)
    if meant is None:
        hint = did_you_mean(first, known)
    else:
        hint = f": did you mean {meant!r}?" if meant in known else f": give {meant}"
    listed = "" if hint else f": its keywords are {', '.join(known)}"
    raise TypeError(f"{function} has no keyword {first!r}{hint}{listed}")
