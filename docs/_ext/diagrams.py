"""Draw the diagrams of the pages as SVG, from text.

A flow has a box for each line ``[words]``, from top to bottom. ``: words`` is the label of the
arrow to the next box. ``-> words: [words]`` is an arrow from the box above to one at its side.

A block of rooms in a page has a line for each floor: ``name  room | room  description``. The name
and the description are optional.
"""

from __future__ import annotations

import html
import re

# A description of each flow, for readers who do not see it.
SHOWN = {
    "data": "compile makes an image of source, load a module of an image; a module's name is a "
    "kernel, a kernel with grid and block a launcher, and arguments launch it",
    "function": "a call runs the plan of its kind of arguments, or Python records it first; all "
    "checks come before all effects",
    "cache": "a key is looked up in your cache, in bundles and in the remote cache; "
    "one process compiles it and stores the image in your cache",
}
FLOWS = {
    "data": """
[source]
: compile
[image]
-> inspect: [its contents, no GPU needed]
-> embed: [an object file for C++]
: load
[module]
: ["name"]
[kernel]
: [grid, block]
[launcher]
: (arguments)
[driver]
""",
    "function": """
[call of a function]
: kinds of the arguments
[recorded for this kind?]
-> no: [Python records the body]
: yes
[plan: shapes, checks, guards]
-> new path: [Python records this path]
-> check fails: [error; nothing has run]
: all values are known
[allocate, launch, return]
""",
    "cache": """
[compile, link, load_inline]
: SHA-256 of all inputs
[your cache directory]
-> hit: [image, digest verified]
: miss
[bundles]
-> hit: [image, digest verified]
: miss
[lock of the key]
: one process at a time
[remote cache, if any]
-> hit: [image, stored in your cache]
: miss
[compiler]
: temporary name, sync, rename
[your cache directory]
-> too large: [evict least recently used]
""",
}

_BOX, _GAP, _SIDE, _HEIGHT, _STEP = 200, 92, 200, 32, 66
_WIDTH = _BOX + _GAP + _SIDE + 2
_TOP = 4
_FLOOR = 30  # the height of a floor of rooms


def diagram(name: str) -> str:
    """Return a flow as HTML."""
    return f'<div class="diagram">\n{_flow(FLOWS[name], SHOWN[name])}\n</div>'


def rooms(text: str) -> str:
    """Return a picture of rooms, as HTML."""
    parts: list[str] = []
    floors = []
    top = _TOP
    for line in text.splitlines():
        # A line without the name of its floor begins with blanks.
        words = re.split(r" {2,}", line[13:].strip() if _has_names(text) else line.strip())
        cells = words[0].split(" | ")
        notes = words[1].replace("`", "").split(" | ") if len(words) > 1 else []
        floors.append(", ".join(cells))
        width = (_WIDTH - 4 * (len(cells) - 1)) / len(cells)
        for place, cell in enumerate(cells):
            parts += _box(1 + place * (width + 4), top, width - 2, cell, _FLOOR)
        for place, note in enumerate(notes):
            middle = (place + 0.5) * _WIDTH / len(notes)
            parts.append(_text(middle, top + _FLOOR + 13, note, "middle", "note"))
        top += _FLOOR + (20 if notes else 4)
    shown = "rooms, from the highest floor to the lowest: " + "; ".join(floors)
    return f'<div class="diagram rooms">\n{_svg(_WIDTH, top, parts, shown)}\n</div>'


def _has_names(text: str) -> bool:
    return re.search(r"^ {13}\S", text, re.MULTILINE) is not None


def _flow(text: str, shown: str) -> str:
    parts: list[str] = []
    top, last_top, sides = _TOP, 0, 0
    label = ""
    for line in text.strip().splitlines():
        if line.startswith(": "):
            label = line[2:]
        elif side := re.fullmatch(r"-> (.*?): \[(.*)\]", line):
            at = last_top + 44 * sides
            sides += 1
            middle = at + _HEIGHT / 2
            if sides > 1:
                parts.append(_line(_BOX + 12, last_top + _HEIGHT / 2, _BOX + 12, middle))
            start = _BOX if sides == 1 else _BOX + 12
            parts.append(_arrow(start, middle, _BOX + _GAP - 2, middle))
            parts.append(_text(_BOX + 18, middle - 5, side[1], "start"))
            parts += _box(_BOX + _GAP, at, _SIDE, side[2])
        else:
            if last_top or label:
                top = last_top + max(_STEP, 44 * sides + 26)
                parts.append(_arrow(_BOX / 2, last_top + _HEIGHT, _BOX / 2, top))
                parts.append(_text(_BOX / 2 + 8, top - 13, label, "start"))
            parts += _box(1, top, _BOX - 2, line[1:-1])
            last_top, sides, label = top, 0, ""
    height = last_top + max(_HEIGHT, 44 * sides - 12) + 4
    return _svg(_WIDTH, height, parts, shown)


def _box(left: float, top: float, width: float, words: str, height: int = _HEIGHT) -> list[str]:
    return [
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height}" rx="5"/>',
        _text(left + width / 2, top + height / 2 + 4.5, words, "middle"),
    ]


def _text(x: float, y: float, words: str, anchor: str, kind: str = "name") -> str:
    place = f'class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f"<text {place}>{html.escape(words)}</text>"


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}"/>'


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    head = "l-6 -3v6z" if to_y == y else "l-3 -6h6z"
    return _line(x, y, to_x, to_y) + f'<path class="head" d="M{to_x:g} {to_y:g}{head}"/>'


def _svg(width: float, height: float, parts: list[str], shown: str) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" role="img" aria-label="{html.escape(shown)}">\n{body}\n</svg>'
    )
