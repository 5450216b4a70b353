"""Suggests the intended name for a misspelled one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``": did you mean 'emulator'?"``, or nothing if no name is near."""
    import difflib  # its import costs more than it is worth if all is well

    # Wrong capital letters are a common mistake. If two names differ only in them, such as Graph
    # and graph, the later one wins: the one that begins like the word.
    names = sorted(known, key=lambda name: name[:1].isupper() == word[:1].isupper())
    lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.7)
    return f": did you mean {lower[found[0]]!r}?" if found else ""
