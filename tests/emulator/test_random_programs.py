"""Random PTX programs: they run, and a GPU computes the same words."""

from __future__ import annotations

import numpy as np
import pytest
import random_ptx
from emulate import launch
from hypothesis import given, settings
from hypothesis import strategies as st

import culaunch as cl
from culaunch import testing

COUNT, GROUP = 600, 20


def emulate(seed: int) -> np.ndarray:
    out = np.zeros((random_ptx.THREADS, random_ptx.OUTPUTS), np.uint32)
    launch(
        random_ptx.program(seed),
        "k",
        random_ptx.inputs(seed),
        out,
        block=(random_ptx.THREADS,),
        check_races=True,
        time_limit=30,
    )
    return out


@pytest.mark.slow
@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_programs_have_no_fault_and_one_answer(seed: int) -> None:
    np.testing.assert_array_equal(emulate(seed), emulate(seed))


@pytest.mark.gpu
@pytest.mark.parametrize("first", range(0, COUNT, GROUP))
def test_the_gpu_agrees(first: int) -> None:
    wrong = []
    for seed in range(first, first + GROUP):
        with testing.use_driver("cuda"):
            real = random_ptx.launch(cl, random_ptx.program(seed), random_ptx.inputs(seed))
        wrong += random_ptx.differences(seed, emulate(seed), real)
    assert not wrong, "\n".join(wrong)
