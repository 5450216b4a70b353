"""Correct programs of other people's libraries: with every check on, nothing is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from corpus import LIBRARIES

import culaunch as cl
from culaunch import testing

if TYPE_CHECKING:
    from corpus import Case

# Compilers compute with unsigned integers by signed instructions, so `check_overflow` reports some
# correct headers.
EVERY_CHECK = {
    "check_races": True,
    "check_uninitialized": True,
    "check_unwritten": True,
    "check_views": True,
    "check_variables": True,
    "check_division": True,
    "check_leaks": True,
}


def run(case: Case, **options: bool) -> tuple[list[Any], list[Any]]:
    """Launch a case on arrays that are views of longer ones; return arguments before and after."""
    before = case.make()
    after = [
        np.concatenate([one, one[:1]])[:-1] if isinstance(one, np.ndarray) else one
        for one in case.make()
    ]
    with testing.use_driver("emulator"), testing.emulator_options(time_limit=60, **options):
        kernel = cl.load(cl.Image(case.ptx().encode()))[case.kernel]
        launcher = kernel.configure(
            grid=case.grid,
            block=case.block,
            shared_memory=case.shared,
            cooperative=case.cooperative,
        )
        launcher(*after)
    return before, after


def test_there_are_enough_programs() -> None:
    assert len({case.name for case in LIBRARIES}) == len(LIBRARIES) >= 45


@pytest.mark.slow
@pytest.mark.parametrize("case", LIBRARIES, ids=lambda case: case.name)
def test_nothing_is_reported_of_a_correct_program(case: Case) -> None:
    case.check(*run(case, **EVERY_CHECK))
