"""The texts of a program: those of its checks are templates, in which numbers stand in braces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._function.programs.program import Tree

MOST_TEXT = 1 << 16

# In the text of a check numbers of registers stand in braces, with a width or precision at most.
_SPEC = r"[<>=^]?[+ -]?#?0?[0-9]{0,3}[,_]?(\.[0-9]{1,3})?[bdoxXeEfFgGn%]?"
_HOLE = rf"\{{(?P<number>[0-9]{{1,4}})(:{_SPEC})?\}}"
_TEMPLATE = re.compile(rf"([^{{}}]|\{{\{{|\}}\}}|{_HOLE})*")
_HOLES = re.compile(rf"\{{\{{|\}}\}}|{_HOLE}")


def check_texts(tree: Tree) -> None:
    """Check the texts of a program's checks: they are templates.

    Raises
    ------
    ValueError
        If one would be read as more than a text with numbers in it.
    """
    for step in (step for node in tree.nodes() for step in node.steps if step.op.name == "CHECK"):
        text, shown = str(step.text), len(step.operands) - 2
        numbers = [int(one["number"] or 0) for one in _HOLES.finditer(text)]
        # `str.format` would follow attributes and items that a field names.
        is_good = len(text) <= MOST_TEXT and _TEMPLATE.fullmatch(text) is not None
        # Nothing of the text is looked up but the numbers that the check shows.
        if not is_good or any(one >= max(shown, 1) for one in numbers):
            raise ValueError(f"program: the text {text!r:.60} of a check is not a template")
