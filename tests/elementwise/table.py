"""The table of functions in docs/elementwise.md, made from the code.

python tests/elementwise/table.py  writes it into the page
"""

from __future__ import annotations

import re
from pathlib import Path

from culaunch._elementwise.operations import OPERATIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "elementwise.md"
BEGIN, END = "<!-- the table of functions -->\n", "<!-- end of the table -->\n"
COLUMNS = {"b": "bool", "i": "signed", "u": "unsigned", "f": "real", "c": "complex"}
# Functions that are not elementwise functions of the standard.
BEYOND = ("erf", "erfc", "rsqrt")


def table() -> str:
    """Write the table in Markdown."""
    lines = [
        f"| function | {' | '.join(COLUMNS.values())} | result |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    rows = {
        operation.name: (operation.kinds, operation.result) for operation in OPERATIONS.values()
    }
    rows["clip"] = ("iuf", "same")
    for name in sorted(rows):
        kinds, result = rows[name]
        marks = " | ".join("yes" if kind in kinds else "" for kind in COLUMNS)
        mark = " (beyond the standard)" if name in BEYOND else ""
        what = {"same": "the type of x", "real": "real", "bool": "bool"}[result]
        lines.append(f"| `{name}`{mark} | {marks} | {what} |")
    return "\n".join(lines) + "\n"


def names_for(kind: str, arity: int) -> list[str]:
    """Return the functions of so many arrays that take a kind of element."""
    return [o.name for o in OPERATIONS.values() if kind in o.kinds and o.arity == arity]


def on_page() -> str:
    """Return the table that the page has."""
    return PAGE.read_text().split(BEGIN)[1].split(END)[0].strip("\n") + "\n"


if __name__ == "__main__":
    text = PAGE.read_text()
    pattern = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: f"{BEGIN}\n{table()}\n{END}", text))
