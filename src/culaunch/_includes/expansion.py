"""What a text becomes when its macros are expanded, in all the ways that there are."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PASTE = frozenset({"##", "%:%:"})
_STRINGIFY = frozenset({"#", "%:"})
_STEPS = 4000


class Expansion:
    """One text's expansions, in all ways at once; it gives up when there are too many."""

    def __init__(self, definitions: Mapping[str, set[Definition]]) -> None:
        self.definitions = definitions
        self.steps = 0

    def results(self, tokens: tuple[Token, ...]) -> set[tuple[Token, ...]]:
        """Return all that tokens may become; a macro that may be undefined stays one way, too."""
        found: set[tuple[Token, ...]] = set()
        todo: list[tuple[tuple[Token, ...], tuple[Token, ...]]] = [((), tokens)]
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

    def _replaced(self, macro: Token, after: tuple[Token, ...]) -> list[tuple[Token, ...]]:
        """Return what follows once a macro is replaced, for each of its definitions."""
        found: list[tuple[Token, ...]] = []
        call = _call(after)
        for definition in self.definitions[macro.text]:
            if "__VA_OPT__" in definition.body:
                raise UnknownNameError
            if definition.parameters is None:
                inside = macro.hidden | {macro.text}
                found.append((*_pasted([Token(one, inside) for one in definition.body]), *after))
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


@dataclass(frozen=True)
class Token:
    """A token of a text that is expanded."""

    text: str
    hidden: frozenset[str] = frozenset()
    """The macros that it came from, which are not expanded in it again."""


@dataclass(frozen=True)
class Definition:
    """One definition of a macro; without parameters it is replaced wherever it stands."""

    parameters: tuple[str, ...] | None
    variadic: str | None
    body: tuple[str, ...]


class UnknownNameError(Exception):
    """The text alone does not say which files a macro can stand for."""


def _call(
    tokens: tuple[Token, ...],
) -> tuple[list[tuple[Token, ...]], tuple[Token, ...], frozenset[str]] | None:
    """Read a call's arguments; give them, what follows, and what the last parenthesis hides."""
    texts = [token.text for token in tokens]
    opened = solid(texts, 0)
    end = end_of_call(texts, 0)
    if end == 0 or texts[end - 1] != ")":
        return None
    given: list[tuple[Token, ...]] = []
    start, depth = opened + 1, 0
    for index in range(opened, end):
        depth += (texts[index] == "(") - (texts[index] == ")")
        if (depth == 1 and texts[index] == ",") or depth == 0:
            given.append(_stripped(tokens[start:index]))
            start = index + 1
    return given, tokens[end:], tokens[end - 1].hidden


def _stripped(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    start, end = 0, len(tokens)
    while start < end and tokens[start].text.isspace():
        start += 1
    while end > start and tokens[end - 1].text.isspace():
        end -= 1
    return tokens[start:end]


def _bound(
    definition: Definition, given: list[tuple[Token, ...]]
) -> dict[str, tuple[Token, ...]] | None:
    names = definition.parameters or ()
    if not names and given == [()]:
        given = []
    if definition.variadic is not None:
        rest = given[len(names) :]
        joined: list[Token] = []
        for index, argument in enumerate(rest):
            joined += [*([Token(",")] if index else []), *argument]
        return {**dict(zip(names, given, strict=False)), definition.variadic: tuple(joined)}
    if len(given) != len(names):
        return None
    return dict(zip(names, given, strict=True))


def _substituted(
    body: tuple[str, ...],
    arguments: Mapping[str, tuple[Token, ...]],
    expanded: Mapping[str, tuple[Token, ...]],
    inside: frozenset[str],
) -> list[Token]:
    solid = [index for index, token in enumerate(body) if not token.isspace()]
    before = {index: body[at] for at, index in itertools.pairwise(solid)}
    behind = {at: body[index] for at, index in itertools.pairwise(solid)}
    found: list[Token] = []
    for index, text in enumerate(body):
        if text in _STRINGIFY and behind.get(index) in arguments:
            continue
        argument = arguments.get(text)
        if argument is None:
            found.append(Token(text, inside))
        elif before.get(index) in _STRINGIFY:
            found.append(Token(_string(argument), inside))
        elif before.get(index) in PASTE or behind.get(index) in PASTE:
            found += [Token(one.text, one.hidden | inside) for one in argument] or [Token("")]
        else:
            found += [Token(one.text, one.hidden | inside) for one in expanded[text]]
    return found


def _string(tokens: Sequence[Token]) -> str:
    text = "".join(" " if token.text.isspace() else token.text for token in tokens)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _pasted(tokens: Sequence[Token]) -> list[Token]:
    """Join what ``##`` stands between."""
    found: list[Token] = []
    joining = False
    for token in tokens:
        if token.text in PASTE and found:
            while found and found[-1].text.isspace():
                found.pop()
            joining = True
        elif joining and token.text.isspace():
            continue
        elif joining and found:
            left = found.pop()
            found.append(Token(left.text + token.text, left.hidden & token.hidden))
            joining = False
        else:
            found.append(token)
            joining = False
    return [token for token in found if token.text]


def solid(tokens: Sequence[str], at: int) -> int:
    """Return where the next token is that is no blank."""
    while at < len(tokens) and tokens[at].isspace():
        at += 1
    return at


def end_of_call(tokens: Sequence[str], at: int) -> int:
    """Return where a call's parentheses end, or the same place when there are none."""
    opened = solid(tokens, at)
    if opened >= len(tokens) or tokens[opened] != "(":
        return at
    depth = 0
    for index in range(opened, len(tokens)):
        depth += (tokens[index] == "(") - (tokens[index] == ")")
        if depth == 0:
            return index + 1
    return len(tokens)
