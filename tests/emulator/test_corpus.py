"""The corpus on the emulator, at its Python interface."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest
from corpus import CASES, LIBRARIES
from emulate import launch

if TYPE_CHECKING:
    from corpus import Case


# test_correct_programs.py runs the others, with more checks.
@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in CASES if case not in LIBRARIES], ids=lambda case: case.name
)
def test_case(case: Case) -> None:
    before = case.make()
    after = copy.deepcopy(before)
    launch(
        case.ptx(),
        case.kernel,
        *after,
        grid=case.grid,
        block=case.block,
        shared=case.shared,
        cooperative=case.cooperative,
        check_races=True,
    )
    case.check(before, after)
