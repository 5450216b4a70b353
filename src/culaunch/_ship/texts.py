"""The texts of a program: those of its checks are templates, in which numbers stand in braces."""

from __future__ import annotations

import re
import struct

from culaunch._function import opcodes as oc

MOST_TEXT = 1 << 16

# In the text of a check numbers of registers stand in braces, with a width or precision at most.
_SPEC = r"[<>=^]?[+ -]?#?0?[0-9]{0,3}[,_]?(\.[0-9]{1,3})?[bdoxXeEfFgGn%]?"
_HOLE = rf"\{{(?P<number>[0-9]{{1,4}})(:{_SPEC})?\}}"
_TEMPLATE = re.compile(rf"([^{{}}]|\{{\{{|\}}\}}|{_HOLE})*")
_HOLES = re.compile(rf"\{{\{{|\}}\}}|{_HOLE}")


def check_texts(data: bytes, texts: tuple[str, ...]) -> None:
    """Check the texts of a program that was decoded: those of its checks are templates.

    Raises
    ------
    ValueError
        If one would be read as more than a text with numbers in it.
    """
    words = struct.unpack(f"<{len(data) // 8}q", data)
    at = 5 + words[4]
    for size in words[5:at]:
        end, start = at + size, at
        while start < end:
            number, length = words[start] & 0xFFFFFFFF, words[start] >> 32
            if number == oc.OPS["CHECK"].number:
                text, shown = texts[words[start + 2]], words[start + 4]
                numbers = [int(one["number"] or 0) for one in _HOLES.finditer(text)]
                # `str.format` would follow attributes and items that a field names.
                is_good = len(text) <= MOST_TEXT and _TEMPLATE.fullmatch(text) is not None
                # Nothing of the text is looked up but the numbers that the check shows.
                if not is_good or any(one >= max(shown, 1) for one in numbers):
                    raise ValueError(f"program: the text {text!r:.60} of a check is not a template")
            if number in (oc.GUARD, oc.EFFECTS):
                break
            start += length
        at = end
