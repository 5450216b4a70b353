"""The first phases of translation: line ends, trigraphs and spliced lines, with a way back."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field

# What compilers take for a blank within a line. A carriage return is one, too: before a line feed
# it belongs to the end of the line, and alone it is what the compiler makes of it (see `Mode`).
BLANKS = r" \t\f\v\r\0"

_TRIGRAPHS = {
    "??=": "#",
    "??/": "\\",
    "??'": "^",
    "??(": "[",
    "??)": "]",
    "??!": "|",
    "??<": "{",
    "??>": "}",
    "??-": "~",
}
_SPLICE = r"\\\r?\n"
_SPACED_SPLICE = rf"\\[{BLANKS}]*\n"
_SLASH = r"(?:\\|\?\?/)"
_TRIGRAPH = r"\?\?[=/'()!<>-]"
_LONE_RETURN = re.compile(r"\r(?!\n)")


@dataclass(frozen=True)
class Mode:
    """One way to read a text, where compilers and their dialects differ."""

    trigraphs: bool = False
    """``??=`` is ``#``."""
    spaced_splices: bool = False
    """Blanks may stand between a backslash and the end of the line that it takes away."""
    lone_returns: bool = False
    """A carriage return by itself ends a line."""
    no_raw_strings: bool = False
    """``R"(...)"`` is a name and a string, as before C++11."""
    open_quotes: bool = False
    """A quote that is not closed takes the rest of its line, comments and all."""


@dataclass(frozen=True)
class Lines:
    """A text after the first phases; `physical` leads back."""

    text: str
    original: str
    _logical: list[int] = field(default_factory=list)
    _shift: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, text: str, mode: Mode) -> Lines:
        """Join lines that are spliced, as the mode has it."""
        original = _LONE_RETURN.sub("\n", text) if mode.lone_returns else text
        if "\\" not in original and not mode.trigraphs:
            return cls(original, original)
        splice = _SPACED_SPLICE if mode.spaced_splices else _SPLICE
        if mode.trigraphs:
            splice = f"{splice.replace(chr(92) * 2, _SLASH, 1)}|{_TRIGRAPH}"
        parts: list[str] = []
        logical: list[int] = []
        shift: list[int] = []
        end = removed = 0
        for match in re.finditer(splice, original):
            replacement = _TRIGRAPHS.get(match[0], "")
            parts += [original[end : match.start()], replacement]
            end = match.end()
            logical.append(match.start() - removed + len(replacement))
            removed += len(match[0]) - len(replacement)
            shift.append(removed)
        if not parts:
            return cls(original, original)
        return cls("".join([*parts, original[end:]]), original, logical, shift)

    def physical(self, place: int) -> int:
        """Return where in the original text a character is."""
        index = bisect.bisect_right(self._logical, place) - 1
        return place + (self._shift[index] if index >= 0 else 0)

    def logical(self, place: int) -> int:
        """Return where a character of the original text has gone."""
        low, high = 0, len(self._logical)
        while low < high:
            middle = (low + high) // 2
            if self._logical[middle] + self._shift[middle] <= place:
                low = middle + 1
            else:
                high = middle
        return place - (self._shift[low - 1] if low else 0)


def other_modes(text: str, *, raw_strings: bool, open_quotes: bool) -> list[Mode]:
    """Return the other ways in which this text could be read, besides the usual one."""
    doubts = [
        name
        for name, there in (
            ("trigraphs", "??" in text and re.search(_TRIGRAPH, text) is not None),
            ("spaced_splices", "\\" in text and _is_spaced(text)),
            ("lone_returns", "\r" in text and _LONE_RETURN.search(text) is not None),
            ("no_raw_strings", raw_strings),
            ("open_quotes", open_quotes),
        )
        if there
    ]
    return [
        Mode(**{name: True for index, name in enumerate(doubts) if choice >> index & 1})
        for choice in range(1, 1 << len(doubts))
    ]


def _is_spaced(text: str) -> bool:
    # A return before the line feed is part of the line's end, with which every compiler splices.
    return re.search(rf"(?:\\|\?\?/)(?!\r?\n)[{BLANKS}]+\n", text) is not None
