"""The texts of a program. The texts of checks are templates with register numbers in braces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._function.programs.program import Tree

MOST_TEXT = 1 << 16

# A check's text contains register numbers in braces, at most with a width or precision.
_SPEC = r"[<>=^]?[+ -]?#?0?[0-9]{0,3}[,_]?(\.[0-9]{1,3})?[bdoxXeEfFgGn%]?"
_HOLE = rf"\{{(?P<number>[0-9]{{1,4}})(:{_SPEC})?\}}"
_TEMPLATE = re.compile(rf"([^{{}}]|\{{\{{|\}}\}}|{_HOLE})*")
_HOLES = re.compile(rf"\{{\{{|\}}\}}|{_HOLE}")


def check_texts(tree: Tree) -> None:
    """Check the texts of a program's checks: they are templates.

    Raise ValueError if one would be read as more than a text with numbers in it.
    """
    for step in (step for node in tree.nodes() for step in node.steps if step.op.name == "CHECK"):
        text, shown = str(step.text), len(step.operands) - 2
        numbers = [int(one["number"] or 0) for one in _HOLES.finditer(text)]
        # `str.format` would evaluate attributes and items named in a field.
        is_good = len(text) <= MOST_TEXT and _TEMPLATE.fullmatch(text) is not None
        # The text may refer only to the numbers that the check shows.
        if not is_good or any(one >= max(shown, 1) for one in numbers):
            raise ValueError(
                f"program: the text of a check must be a valid template (got {text!r:.60})"
            )
