"""Every file name that a macro could stand for, whichever of its definitions is in force."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
_PASTE = frozenset({"##", "%:%:"})
_STRINGIFY = frozenset({"#", "%:"})
_STEPS = 4000


class Macros:
    """All definitions of all macros: each may be the one in force, and so may be none.

    Parameters
    ----------
    defines : iterable of str
        What follows ``#define``, for each.
    """

    def __init__(self, defines: Iterable[str]) -> None:
        self._all: dict[str, set[_Definition]] = {}
        for define in defines:
            head = _HEAD.match(define)
            if head is not None:
                parameters, variadic = _parameters(head[3]) if head[2] else (None, None)
                body = tuple(_split(define[head.end() :].strip()))
                self._all.setdefault(head[1], set()).add(_Definition(parameters, variadic, body))

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
        return not words.isdisjoint(_PASTE) and can_paste(words, self._questions)

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
        return self.leading_to([*QUESTIONS, *_PASTE])

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
                at = _solid(tokens, index + 1)
                if at < len(tokens) and tokens[at] == "(":
                    found |= self._named(tokens[at + 1 : _end_of_call(tokens, at) - 1])
                else:
                    found |= self._named(tokens[at:])
        return found

    def _expand(self, tokens: Sequence[str]) -> set[tuple[str, ...]]:
        expansion = _Expansion(self._all)
        results = expansion.results(tuple(_Token(token) for token in tokens))
        return {tuple(token.text for token in result) for result in results}


@dataclass(frozen=True)
class _Token:
    text: str
    hidden: frozenset[str] = frozenset()
    """The macros that it came from, which are not expanded in it again."""


@dataclass(frozen=True)
class _Definition:
    parameters: tuple[str, ...] | None
    variadic: str | None
    body: tuple[str, ...]


class UnknownNameError(Exception):
    """The text alone does not say which files a macro can stand for."""


class _Expansion:
    """One text's expansions, in all ways at once; it gives up when there are too many."""

    def __init__(self, definitions: Mapping[str, set[_Definition]]) -> None:
        self.definitions = definitions
        self.steps = 0

    def results(self, tokens: tuple[_Token, ...]) -> set[tuple[_Token, ...]]:
        found: set[tuple[_Token, ...]] = set()
        todo: list[tuple[tuple[_Token, ...], tuple[_Token, ...]]] = [((), tokens)]
        while todo:
            self._step()
            done, rest = todo.pop()
            for index, token in enumerate(rest):
                if token.text in self.definitions and token.text not in token.hidden:
                    before, after = done + rest[:index], rest[index + 1 :]
                    todo.append(((*before, token), after))
                    todo += [(before, one) for one in self._replaced(token, after)]
                    break
            else:
                found.add(done + rest)
        return found

    def _step(self) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise UnknownNameError

    def _replaced(self, macro: _Token, after: tuple[_Token, ...]) -> list[tuple[_Token, ...]]:
        """Return what follows once a macro is replaced, for each of its definitions."""
        found: list[tuple[_Token, ...]] = []
        call = _call(after)
        for definition in self.definitions[macro.text]:
            if "__VA_OPT__" in definition.body:
                raise UnknownNameError
            if definition.parameters is None:
                inside = macro.hidden | {macro.text}
                found.append((*_pasted([_Token(one, inside) for one in definition.body]), *after))
                continue
            arguments = None if call is None else _bound(definition, call[0])
            if call is None or arguments is None:
                continue
            inside = (macro.hidden & call[2]) | {macro.text}
            # An argument means the same in all the places that it has in the body.
            used = [name for name in arguments if name in definition.body]
            each = [self.results(arguments[name]) for name in used]
            for choice in itertools.product(*each):
                self._step()
                expanded = dict(zip(used, choice, strict=True))
                body = _substituted(definition.body, arguments, expanded, inside)
                found.append((*_pasted(body), *call[1]))
        return found


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


def _solid(tokens: Sequence[str], at: int) -> int:
    while at < len(tokens) and tokens[at].isspace():
        at += 1
    return at


def _end_of_call(tokens: Sequence[str], at: int) -> int:
    """Return where a call's parentheses end, or the same place when there are none."""
    opened = _solid(tokens, at)
    if opened >= len(tokens) or tokens[opened] != "(":
        return at
    depth = 0
    for index in range(opened, len(tokens)):
        depth += (tokens[index] == "(") - (tokens[index] == ")")
        if depth == 0:
            return index + 1
    return len(tokens)


def _end_of_calls(tokens: Sequence[str], at: int) -> int:
    """Return where a macro's arguments end, and those of what it expands to: `A(x)(y)`."""
    while (end := _end_of_call(tokens, at)) > at:
        at = end
    return at


def _parameters(text: str) -> tuple[tuple[str, ...], str | None]:
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    variadic = None
    if names and names[-1].endswith("..."):
        variadic = names.pop()[:-3].strip() or "__VA_ARGS__"
    return tuple(names), variadic


def _call(
    tokens: tuple[_Token, ...],
) -> tuple[list[tuple[_Token, ...]], tuple[_Token, ...], frozenset[str]] | None:
    """Read a call's arguments; give them, what follows, and what the last parenthesis hides."""
    texts = [token.text for token in tokens]
    opened = _solid(texts, 0)
    end = _end_of_call(texts, 0)
    if end == 0 or texts[end - 1] != ")":
        return None
    given: list[tuple[_Token, ...]] = []
    start, depth = opened + 1, 0
    for index in range(opened, end):
        depth += (texts[index] == "(") - (texts[index] == ")")
        if (depth == 1 and texts[index] == ",") or depth == 0:
            given.append(_stripped(tokens[start:index]))
            start = index + 1
    return given, tokens[end:], tokens[end - 1].hidden


def _stripped(tokens: tuple[_Token, ...]) -> tuple[_Token, ...]:
    start, end = 0, len(tokens)
    while start < end and tokens[start].text.isspace():
        start += 1
    while end > start and tokens[end - 1].text.isspace():
        end -= 1
    return tokens[start:end]


def _bound(
    definition: _Definition, given: list[tuple[_Token, ...]]
) -> dict[str, tuple[_Token, ...]] | None:
    names = definition.parameters or ()
    if not names and given == [()]:
        given = []
    if definition.variadic is not None:
        rest = given[len(names) :]
        joined: list[_Token] = []
        for index, argument in enumerate(rest):
            joined += [*([_Token(",")] if index else []), *argument]
        return {**dict(zip(names, given, strict=False)), definition.variadic: tuple(joined)}
    if len(given) != len(names):
        return None
    return dict(zip(names, given, strict=True))


def _substituted(
    body: tuple[str, ...],
    arguments: Mapping[str, tuple[_Token, ...]],
    expanded: Mapping[str, tuple[_Token, ...]],
    inside: frozenset[str],
) -> list[_Token]:
    solid = [index for index, token in enumerate(body) if not token.isspace()]
    before = {index: body[at] for at, index in itertools.pairwise(solid)}
    behind = {at: body[index] for at, index in itertools.pairwise(solid)}
    found: list[_Token] = []
    for index, text in enumerate(body):
        if text in _STRINGIFY and behind.get(index) in arguments:
            continue
        argument = arguments.get(text)
        if argument is None:
            found.append(_Token(text, inside))
        elif before.get(index) in _STRINGIFY:
            found.append(_Token(_string(argument), inside))
        elif before.get(index) in _PASTE or behind.get(index) in _PASTE:
            found += [_Token(one.text, one.hidden | inside) for one in argument] or [_Token("")]
        else:
            found += [_Token(one.text, one.hidden | inside) for one in expanded[text]]
    return found


def _string(tokens: Sequence[_Token]) -> str:
    text = "".join(" " if token.text.isspace() else token.text for token in tokens)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _pasted(tokens: Sequence[_Token]) -> list[_Token]:
    """Join what ``##`` stands between."""
    found: list[_Token] = []
    joining = False
    for token in tokens:
        if token.text in _PASTE and found:
            while found and found[-1].text.isspace():
                found.pop()
            joining = True
        elif joining and token.text.isspace():
            continue
        elif joining and found:
            left = found.pop()
            found.append(_Token(left.text + token.text, left.hidden & token.hidden))
            joining = False
        else:
            found.append(token)
            joining = False
    return [token for token in found if token.text]
