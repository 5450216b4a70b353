"""The table of instructions in docs/emulator.md is the emulator's."""

from __future__ import annotations

import re
from pathlib import Path

from emulator_internals import INSTRUCTIONS

PAGE = Path(__file__).parents[2] / "docs" / "emulator.md"


def test_every_instruction_is_listed_once() -> None:
    section = PAGE.read_text().split("### Instructions")[1].split("## Numbers")[0]
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|.*", section, re.MULTILINE)))
    assert len(listed) == len(set(listed))
    assert set(listed) == set(INSTRUCTIONS)
