"""Every file name that a macro could stand for, whichever of its definitions is in force."""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING

from culaunch._includes.expansion import (
    PASTE,
    Definition,
    Expansion,
    Token,
    UnknownNameError,
    end_of_call,
    solid,
)
from culaunch._includes.scanning import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^\W\d][\w$]*|\.?\d(?:[eEpP][+-]|[\w.])*'
    r"|##|%:%:|%:|\s+|.",
    re.DOTALL,
)
_IDENTIFIER = re.compile(r"[^\W\d][\w$]*")
# A macro of the compiler's own could stand for anything.
_RESERVED = re.compile(r"_[A-Z_]|(?:unix|linux|i386)\Z")
_HEAD = re.compile(r"\s*([^\W\d][\w$]*)(\(([^()]*)\))?")


class Macros:
    """All definitions of all macros: each may be the one in force, and so may be none.

    Parameters
    ----------
    defines : iterable of str
        What follows ``#define``, for each.
    """

    def __init__(self, defines: Iterable[str]) -> None:
        self._all: dict[str, set[Definition]] = {}
        for define in defines:
            head = _HEAD.match(define)
            if head is not None:
                parameters, variadic = _parameters(head[3]) if head[2] else (None, None)
                body = tuple(_split(define[head.end() :].strip()))
                self._all.setdefault(head[1], set()).add(Definition(parameters, variadic, body))

    def leading_to(self, words: Iterable[str]) -> frozenset[str]:
        """Return the words, and the macros whose expansion can have one of them in it."""
        uses: dict[str, set[str]] = {}
        for name, definitions in self._all.items():
            for token in itertools.chain.from_iterable(one.body for one in definitions):
                uses.setdefault(token, set()).add(name)
        return _reached(words, uses)

    def can_paste_question(self, text: str) -> bool:
        """Tell whether ``__has_include`` and the like could be pasted together in a condition."""
        words = _reached(_split(text), self._words)
        return not words.isdisjoint(PASTE) and can_paste(words, self._questions)

    @functools.cached_property
    def _words(self) -> dict[str, set[str]]:
        """The words of each macro's own, which are not its parameters."""
        return {
            name: set().union(*({*one.body} - {*(one.parameters or ())} for one in definitions))
            for name, definitions in self._all.items()
        }

    def included(self, text: str) -> set[str]:
        """Return the names, as ``"name`` or ``<name``, that ``#include text`` can mean.

        Raises
        ------
        UnknownNameError
            If that cannot be told.
        """
        return set().union(*(self._named(tokens) for tokens in self._expand(_split(text))))

    def asked(self, text: str) -> set[str]:
        """Return the names that the condition ``#if text`` can ask for through its macros.

        Raises
        ------
        UnknownNameError
            If that cannot be told.
        """
        suspicious = self._pasting if self.can_paste_question(text) else self._questions
        found: set[str] = set()
        tokens = _split(text)
        for index, token in enumerate(tokens):
            if token in suspicious:
                # The question alone, not all of the condition: that has fewer expansions.
                end = _end_of_calls(tokens, index + 1)
                for expanded in self._expand(tokens[index:end]):
                    found |= self._questioned(expanded)
        return found

    @functools.cached_property
    def _questions(self) -> frozenset[str]:
        return self.leading_to(QUESTIONS)

    @functools.cached_property
    def _pasting(self) -> frozenset[str]:
        return self.leading_to([*QUESTIONS, *PASTE])

    def _named(self, tokens: Sequence[str]) -> set[str]:
        """Read what stands where a file's name is expected."""
        text = "".join(" " if token.isspace() else token for token in tokens).strip()
        if text.startswith('"'):
            end = text.find('"', 1)
            return {text[:end]} if end > 0 else set()
        if text.startswith("<") and ">" in text:
            name = text[1 : text.index(">")]
            if any(self._could_be_anything(word) for word in _IDENTIFIER.findall(name)):
                raise UnknownNameError
            # Compilers keep the blanks between macros, or some of them.
            return {f"<{one}" for one in (name, name.strip(), name.replace(" ", ""))}
        # __FILE__ is a file that was read already.
        if any(map(self._could_be_anything, set(tokens) - {"__FILE__"})):
            raise UnknownNameError
        return set()

    def _could_be_anything(self, word: str) -> bool:
        return word not in self._all and _RESERVED.match(word) is not None

    def _questioned(self, tokens: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for index, token in enumerate(tokens):
            if token in QUESTIONS:
                at = solid(tokens, index + 1)
                if at < len(tokens) and tokens[at] == "(":
                    found |= self._named(tokens[at + 1 : end_of_call(tokens, at) - 1])
                else:
                    found |= self._named(tokens[at:])
        return found

    def _expand(self, tokens: Sequence[str]) -> set[tuple[str, ...]]:
        expansion = Expansion(self._all)
        results = expansion.results(tuple(Token(token) for token in tokens))
        return {tuple(token.text for token in result) for result in results}


def can_paste(parts: frozenset[str], wholes: Iterable[str]) -> bool:
    """Tell whether one of these words can be pasted together out of others."""
    return any(_is_joined(word, parts - {word}) for word in wholes)


def _reached(start: Iterable[str], edges: Mapping[str, set[str]]) -> frozenset[str]:
    found = set(start)
    todo = list(found)
    while todo:
        more = edges.get(todo.pop(), set()) - found
        found |= more
        todo += more
    return frozenset(found)


def _is_joined(word: str, parts: frozenset[str]) -> bool:
    reached = {0}
    for end in range(1, len(word) + 1):
        if any(word[start:end] in parts for start in reached):
            reached.add(end)
    return len(word) in reached


def _split(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _end_of_calls(tokens: Sequence[str], at: int) -> int:
    """Return where a macro's arguments end, and those of what it expands to: `A(x)(y)`."""
    while (end := end_of_call(tokens, at)) > at:
        at = end
    return at


def _parameters(text: str) -> tuple[tuple[str, ...], str | None]:
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    variadic = None
    if names and names[-1].endswith("..."):
        variadic = names.pop()[:-3].strip() or "__VA_ARGS__"
    return tuple(names), variadic
