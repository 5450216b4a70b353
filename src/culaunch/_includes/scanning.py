"""What one text says about other files, read in every way in which a compiler could read it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from culaunch._includes.directives import CONDITIONS, Directive, Name, Reader
from culaunch._includes.phases import Mode, other_modes

QUESTIONS = ("__has_include_next", "__has_include", "__has_embed")

_IDENTIFIER = re.compile(r"[^\W\d][\w$]*")
_USUAL = Mode()


@dataclass(frozen=True)
class Scan:
    """What was found in one text."""

    names: tuple[Name, ...] = ()
    """The files that it names, in order, in ``#include``, ``__has_include`` and the like."""
    next_names: frozenset[str] = frozenset()
    """Which of the names are looked for behind the directory that the text is in."""
    doubtful: tuple[str, ...] = ()
    """Names that are there only for a compiler that reads the text in an unusual way."""
    computed: tuple[str, ...] = ()
    """What follows ``#include`` where it is no name: macros."""
    conditions: tuple[str, ...] = ()
    """What follows ``#if`` and ``#elif``."""
    defines: tuple[str, ...] = ()
    """What follows ``#define``."""

    @property
    def is_empty(self) -> bool:
        """Whether no file is named, nor can one be, whatever macros are defined."""
        return not (self.names or self.doubtful or self.computed or self.conditions)


def scan(text: str) -> Scan:
    """Find what a text says about other files.

    Compilers and dialects differ in what a line is, in trigraphs, raw strings and quotes that are
    not closed. A text in which that matters is read in all these ways, and all that is found
    counts.
    """
    reader = Reader(text, _USUAL)
    found = list(reader.directives())
    names = [name for directive in found for name in _names(directive)]
    known = {name.spelled for name in names}
    others: list[Directive] = []
    for mode in other_modes(text, raw_strings=reader.raw_strings, open_quotes=reader.open_quotes):
        others += Reader(text, mode).directives()
    doubtful = dict.fromkeys(
        name.spelled for other in others for name in _names(other) if name.spelled not in known
    )
    everything = [*found, *others]
    conditions = _unique(d.rest for d in everything if d.word in CONDITIONS)
    defines = _unique(d.rest for d in everything if d.word == "define")
    return Scan(
        names=tuple(names),
        next_names=frozenset(
            d.name.spelled for d in everything if d.word == "include_next" and d.name is not None
        ),
        doubtful=tuple(doubtful),
        computed=_unique(
            d.rest
            for d in everything
            if d.name is None and d.word not in CONDITIONS and d.word != "define"
        ),
        conditions=tuple(one for one in conditions if _IDENTIFIER.search(one)),
        defines=defines,
    )


def _names(directive: Directive) -> tuple[Name, ...]:
    return directive.questions if directive.name is None else (directive.name,)


def _unique(texts: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.strip() for text in texts))  # type: ignore[attr-defined]
