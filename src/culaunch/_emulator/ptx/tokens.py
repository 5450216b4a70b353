"""Split PTX text into tokens and walk over them."""

from __future__ import annotations

import re
import struct
from typing import NoReturn

from culaunch._errors import ImageError

_TOKEN = re.compile(
    r"""
    "[^"]*"                                   # a string
    | 0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b
    | 0[xX][0-9a-fA-F]+U? | 0[bB][01]+U?
    | \d{1,400}\.\d*(?:[eE][+-]?\d+)? | \d{1,400}[eE][+-]?\d+ | \d{1,400}U?
    | [%$_A-Za-z][\w$]*
    | \.\w+(?:::\w+)*                         # a directive or a modifier
    | \S                                      # punctuation, or something the parser refuses
    """,
    re.VERBOSE,
)
# An unclosed comment extends to the end. Without this match, each "/*" in it would be tried again,
# in a time that grows with the square of the text.
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_DEEPEST = 64


class Tokens:
    """The tokens of a text, and the line that each is on."""

    def __init__(self, text: str) -> None:
        self.texts: list[str] = []
        self.lines: list[int] = []
        # As it was given, comments and all: messages quote it.
        self.source = text.split("\n")
        # Line by line, to know each token's line without counting. No token except a comment
        # crosses the end of a line, and comments are blanked before.
        for number, line in enumerate(_COMMENT.sub(self._blank, text).split("\n"), 1):
            found = _TOKEN.findall(line)
            if found:
                self.texts += found
                self.lines += [number] * len(found)

    def _blank(self, match: re.Match[str]) -> str:
        text = match[0]
        if text[0] == '"':
            return text
        if text.startswith("/*") and (len(text) < 4 or not text.endswith("*/")):
            line = match.string.count("\n", 0, match.start()) + 1
            raise ImageError(
                f"a comment is not closed, in: {self.line_text(line)}",
                source=f"PTX line {line}",
            )
        # A comment separates tokens, and its lines are counted.
        return " " + "\n" * text.count("\n")

    def line_text(self, number: int) -> str:
        """Return line `number`, stripped, for a message."""
        return self.source[number - 1].strip() if 0 < number <= len(self.source) else ""


class Cursor:
    """A position in a range of tokens."""

    def __init__(self, tokens: Tokens, start: int = 0, stop: int | None = None) -> None:
        self.tokens = tokens
        self.texts = tokens.texts
        self.at = start
        self.depth = 0
        self.stop = len(tokens.texts) if stop is None else stop

    @property
    def line(self) -> int:
        """The line of the next token."""
        lines = self.tokens.lines
        return lines[min(self.at, len(lines) - 1)] if lines else 1

    def done(self) -> bool:
        """Tell whether the range is used up."""
        return self.at >= self.stop

    def peek(self) -> str:
        """Return the next token, or an empty string at the end."""
        return self.texts[self.at] if self.at < self.stop else ""

    def peek_after(self) -> str:
        """Return the token after the next one, or an empty string."""
        return self.texts[self.at + 1] if self.at + 1 < self.stop else ""

    def take(self) -> str:
        """Return the next token and step over it."""
        if self.at >= self.stop:
            self.fail("the text ends in the middle of a statement")
        self.at += 1
        return self.texts[self.at - 1]

    def accept(self, text: str) -> bool:
        """Step over the next token if it is `text`."""
        if self.at < self.stop and self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Step over `text`; anything else is an error."""
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {self.peek()!r}")

    def integer(self) -> int:
        """Return the next token as an integer."""
        negative = self.accept("-")
        token = self.take()
        if not token[0].isdigit():
            self.fail(f"expected an integer, found {token!r}")
        bits, float_size = parse_number(token)
        if float_size:
            self.fail(f"expected an integer, found {token!r}")
        return -bits if negative else bits

    def skip_past(self, text: str) -> None:
        """Step over everything up to and including `text`."""
        while self.take() != text:
            pass

    def skip_braces(self) -> tuple[int, int]:
        """Step over a block in braces; return the range of the tokens inside."""
        self.expect("{")
        start, depth = self.at, 1
        texts = self.texts
        # Bodies are most of a text: this looks at each token once, without the calls of `take`.
        for at in range(start, self.stop):
            if texts[at] == "{":
                depth += 1
            elif texts[at] == "}":
                depth -= 1
                if not depth:
                    self.at = at + 1
                    return start, at
        return self.fail("a '{' is not closed")

    def enter(self) -> None:
        """Go into brackets: too many in each other are an error, not the end of Python's stack."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"brackets are nested more than {_DEEPEST} deep")

    def leave(self) -> None:
        """Go out of brackets."""
        self.depth -= 1

    def fail(self, message: str) -> NoReturn:
        """Raise the error for malformed PTX here."""
        line = self.line
        text = self.tokens.line_text(line)
        raise ImageError(f"{message}, in: {text}", source=f"PTX line {line}")


def parse_number(token: str) -> tuple[int, int]:
    """Return the bits of a number token, and 4 or 8 if it is a float of that size."""
    prefix, digits = token[:2].lower(), token[2:].rstrip("U")
    if prefix == "0f":
        return int(digits, 16), 4
    if prefix == "0d":
        return int(digits, 16), 8
    if prefix == "0x":
        return int(digits, 16), 0
    if prefix == "0b":
        return int(digits, 2), 0
    if "." in token or "e" in token or "E" in token:
        return int.from_bytes(struct.pack("<d", float(token)), "little"), 8
    digits = token.rstrip("U")
    # A leading zero is octal, as in C.
    octal = len(digits) > 1 and digits[0] == "0" and not {"8", "9"} & set(digits)
    return int(digits, 8 if octal else 10), 0
