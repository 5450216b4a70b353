"""Find the directives of a text: comments are blanks, strings are not looked into."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._includes.phases import BLANKS, Lines, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

INCLUDES = frozenset({"include", "include_next", "import", "embed"})
CONDITIONS = frozenset({"if", "elif"})

_START = re.compile(rf"[{BLANKS}\n]*")
_BLANK = re.compile(rf"[{BLANKS}]*")
_HASH = re.compile(r"#|%:")
_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
# The next thing outside of a directive that changes how what follows is read. A line counts only
# if it begins with a directive or with a comment, behind which there may be one.
_STOP = re.compile(rf"//|/\*|[\"']|\n[{BLANKS}]*(?=#|%:|/\*)")
_LINE_STOP = re.compile(r"//|/\*|[\"'\n]|\b__has_(?:include(?:_next)?|embed)\b")
_NAME = re.compile(r'"[^"\n]*"|<[^>\n]*>')
_QUOTED = {'"': re.compile(r'"(?:[^"\\\n]|\\.)*"'), "'": re.compile(r"'(?:[^'\\\n]|\\.)*'")}
_RAW_PREFIX = re.compile(r"(?:^|[^\w$])(?:u8|u|U|L)?R$")
_RAW_OPEN = re.compile(r'"([^ ()\\\t\v\f\n"]{0,16})\(')
_NUMBER = re.compile(r"(?:^|[^\w$.'])\.?\d[\w.']*$")


@dataclass(frozen=True)
class Name:
    """A file's name in the text: ``"name`` or ``<name``, and where it stands in the original."""

    spelled: str
    start: int
    end: int


@dataclass
class Directive:
    """One directive that says something about files, or that may."""

    word: str
    """``include``, ``include_next``, ``import``, ``embed``, ``if``, ``elif`` or ``define``."""
    name: Name | None = None
    """What is included, when it is said in so many words."""
    rest: str = ""
    """The rest of the line, with blanks for comments, when `name` is None."""
    questions: tuple[Name, ...] = ()
    """What ``__has_include`` and the like ask for in so many words."""


class Reader:
    """Go through a text in one mode."""

    def __init__(self, text: str, mode: Mode) -> None:
        self.lines = Lines.of(text, mode)
        self.text = self.lines.text
        self.mode = mode
        self.raw_strings = False
        """Whether a raw string was met."""
        self.open_quotes = False
        """Whether a quote was met that is not closed."""

    def directives(self) -> Iterator[Directive]:
        """Return the directives in their order."""
        text = self.text
        # A byte order mark is no character of the first line.
        at = self._line_start(1 if text.startswith("\ufeff") else 0)
        while at >= 0:
            match = _HASH.match(text, at)
            if match is not None:
                directive, at = self._directive(match.end())
                if directive is not None:
                    yield directive
            at = self._next_line(at)

    def _next_line(self, at: int) -> int:
        """Go to the start of a line that may have a directive; give -1 at the end of the text."""
        while at >= 0:
            stop = _STOP.search(self.text, at)
            if stop is None:
                return -1
            if stop[0][0] == "\n":
                return self._line_start(stop.end())
            at = self._skip(stop[0], stop.start())
        return -1

    def _line_start(self, at: int) -> int:
        """Go over blanks, comments and empty lines; give where a directive may be."""
        while True:
            at = _START.match(self.text, at).end()  # type: ignore[union-attr]
            if not self.text.startswith("/*", at):
                return at
            end = self.text.find("*/", at + 2)
            if end < 0:
                return -1
            at = end + 2

    def _blank(self, at: int) -> int:
        """Go over blanks and comments within a line."""
        text = self.text
        while True:
            at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
            if not text.startswith("/*", at):
                return at
            end = text.find("*/", at + 2)
            if end < 0:
                return len(text)
            at = end + 2

    def _skip(self, what: str, at: int) -> int:
        """Go over a comment or a literal; give -1 at the end of the text."""
        text = self.text
        if what == "//":
            return text.find("\n", at)
        if what == "/*":
            end = text.find("*/", at + 2)
            return end if end < 0 else end + 2
        return self._literal(what, at)

    def _literal(self, quote: str, at: int) -> int:
        text = self.text
        if quote == '"' and not self.mode.no_raw_strings:
            end = self._raw_string(at)
            if end is not None:
                return end
        line = max(text.rfind("\n", 0, at) + 1, at - 64)
        if quote == "'" and _NUMBER.search(text, line, at) is not None:
            # It separates the digits of a number.
            return at + 1
        closed = _QUOTED[quote].match(text, at)
        if closed is not None:
            return closed.end()
        self.open_quotes = True
        return text.find("\n", at) if self.mode.open_quotes else at + 1

    def _raw_string(self, at: int) -> int | None:
        if _RAW_PREFIX.search(self.text[max(0, at - 4) : at]) is None:
            return None
        opened = _RAW_OPEN.match(self.text, at)
        if opened is None:
            return None
        self.raw_strings = True
        # Lines are not spliced within one: its end is looked for in the original text.
        place = self.lines.physical(opened.end())
        mark = f'){opened[1]}"'
        end = self.lines.original.find(mark, place)
        return -1 if end < 0 else self.lines.logical(end + len(mark) - 1) + 1

    def _directive(self, at: int) -> tuple[Directive | None, int]:
        """Read what follows a ``#``; give it, and where to go on."""
        at = self._blank(at)
        word = _WORD.match(self.text, at)
        if word is None:
            return None, at
        at = word.end()
        if word[0] in INCLUDES:
            start = self._blank(at)
            named = _NAME.match(self.text, start)
            if named is not None:
                return Directive(word[0], self._name(named)), named.end()
            rest, _, end = self._rest(at, ask=False)
            return Directive(word[0], rest=rest), end
        if word[0] in CONDITIONS or word[0] == "define":
            rest, questions, end = self._rest(at, ask=True)
            return Directive(word[0], rest=rest, questions=questions), end
        return None, at

    def _name(self, match: re.Match[str]) -> Name:
        spelled = match[0]
        start = self.lines.physical(match.start() + 1)
        # Right behind the last character: a splice may follow.
        end = self.lines.physical(match.end() - 2) + 1 if len(spelled) > 2 else start
        return Name(spelled[:-1], start, end)

    def _rest(self, at: int, *, ask: bool) -> tuple[str, tuple[Name, ...], int]:
        """Read to the end of the line, with a blank for each comment."""
        text = self.text
        parts: list[str] = []
        questions: list[Name] = []
        while True:
            stop = _LINE_STOP.search(text, at)
            if stop is None or stop[0] == "\n":
                end = len(text) if stop is None else stop.start()
                parts.append(text[at:end])
                return "".join(parts), tuple(questions), end
            parts.append(text[at : stop.start()])
            if stop[0][0] == "_":
                at, name = self._question(stop.end()) if ask else (stop.end(), None)
                # What is asked in so many words is no longer of interest.
                parts.append(" 0 " if name is not None else text[stop.start() : at])
                questions += [name] if name is not None else []
                continue
            if stop[0][0] == "/":
                parts.append(" ")
                at = self._skip(stop[0], stop.start())
            else:
                at = self._literal(stop[0], stop.start())
                parts.append(text[stop.start() : at] if at >= 0 else text[stop.start() :])
            if at < 0:
                return "".join(parts), tuple(questions), len(text)

    def _question(self, at: int) -> tuple[int, Name | None]:
        start = self._blank(at)
        opened = self.text.startswith("(", start)
        if opened:
            start = self._blank(start + 1)
        named = _NAME.match(self.text, start)
        if named is None:
            return at, None
        end = self._blank(named.end())
        closed = opened and self.text.startswith(")", end)
        return end + 1 if closed else named.end(), self._name(named)
