"""Find and split the parts of PTX that matter, past comments and strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator

    from culaunch._errors import ImageError
    from culaunch._image.reader import Reader

_ENTRY = re.compile(rb"\.entry(?=[\s/])")
# Every pattern below takes linear time, on any input: no two ways to match the same text.
_BLANK = re.compile(rb"\s+|//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)")
# A directive ends where the next one begins: `.param.u64` is two.
_TOKEN = re.compile(
    rb'\s*(\.[\w$%]{1,65535}|[A-Za-z_$%][\w$%.]{0,65535}|\d\w{0,19}|"[^"\n]*"|[^\s\w])'
)
_PARTS = re.compile(rb'//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|"[^"\n]*"|\.entry(?=[\s/])')
_LINE_PREFIX = re.compile(rb'(?:[^"/\n]|"[^"\n]*"|/(?!/))*')
_LONGEST_LINE = 4096
_IDENTIFIER = re.compile(r"[A-Za-z][\w$]*|[_$%][\w$]+", re.ASCII)
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]{1,8}|\d{1,10})[uU]?", re.ASCII)


class Tokens:
    """The tokens from one offset on.

    Parameters
    ----------
    text : bytes or mmap
        The whole text.
    offset : int
        Where the first token is.
    reader : Reader
        The same bytes, for messages.
    """

    def __init__(self, text: bytes | mmap.mmap, offset: int, reader: Reader) -> None:
        self._text = text
        self._offset = offset
        self.reader = reader

    @property
    def at_end(self) -> bool:
        """Whether nothing is left but white space and comments."""
        offset = skip_blank(self._text, self._offset)
        return offset >= len(self._text) or self._text[offset] == 0

    def next(self) -> str:
        """Return the next token."""
        found = _TOKEN.match(self._text, self._offset)
        if found and found[1] == b"/":
            # A comment, most likely; rare enough for a second match.
            self._offset = skip_blank(self._text, self._offset)
            found = _TOKEN.match(self._text, self._offset)
        if not found:
            raise self.error("is truncated or corrupt: a declaration does not end")
        self._offset = found.end()
        return found[1].decode("utf-8", "backslashreplace")

    def accept(self, token: str) -> bool:
        """Take the next token if it is this one."""
        # One token back is all that this grammar needs.
        before = self._offset
        if self.next() == token:
            return True
        self._offset = before
        return False

    def identifier(self, what: str) -> str:
        """Take a name."""
        word = self.next()
        if not _IDENTIFIER.fullmatch(word):
            raise self.error(f"is corrupt: it has {word!r} in place of {what}")
        return word

    def number(self, what: str) -> int:
        """Take an integer."""
        word = self.next()
        if not _NUMBER.fullmatch(word):
            raise self.error(f"is corrupt: it has {word!r} in place of the number of {what}")
        word = word.rstrip("uU")
        return int(word, 16) if word[:2] in ("0x", "0X") else int(word)

    def dims(self, what: str) -> tuple[int, int, int]:
        """Take one to three integers; missing ones are 1."""
        x = self.number(what)
        y = self.number(what) if self.accept(",") else 1
        z = self.number(what) if self.accept(",") else 1
        return x, y, z

    def error(self, message: str) -> ImageError:
        """Make the error for the token that was read last."""
        return self.reader.error(message, self._offset)


def skip_blank(text: bytes | memoryview | mmap.mmap, offset: int) -> int:
    """Return the offset after white space and comments."""
    while found := _BLANK.match(text, offset):
        offset = found.end()
    return offset


def entry_offsets(text: bytes | mmap.mmap) -> Iterator[int]:
    """Yield the offset of each ``.entry`` that is not in a comment or a string.

    Searching for the word and checking its line is many times faster than a scan of all the text.
    Only comments over several lines, and absurdly long lines, need the scan.
    """
    passed = 0
    # One character is found much faster than two, and usually it is absent.
    if text.find(b"*") < 0 or text.find(b"/*") < 0:
        for found in _ENTRY.finditer(text):
            offset = passed = found.start()
            line = text.rfind(b"\n", max(0, offset - _LONGEST_LINE), offset) + 1
            # The beginning of the line may be too far away to search for each time. Instead, one
            # pass goes through the whole text, and continues after the last result.
            if not line and offset > _LONGEST_LINE:
                break
            prefix = _LINE_PREFIX.match(text, line, offset)
            # The pattern stops before a comment or an open string: then the word is in one.
            if prefix and prefix.end() == offset:
                yield offset
        else:
            return
    for part in _PARTS.finditer(text):
        if part[0] == b".entry" and part.start() >= passed:
            yield part.start()
