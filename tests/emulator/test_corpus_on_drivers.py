"""The corpus through the public API: on the emulated driver, on a GPU, one against the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from corpus import CASES

import culaunch as cl
from culaunch import testing

if TYPE_CHECKING:
    from corpus import Case

SAME = [case for case in CASES if case.same_on_gpu]


def run(case: Case) -> list[Any]:
    """Launch a case on the driver in use; give its arguments as they are afterwards."""
    arguments = case.make()
    # As bytes and by address: arrays of structures are no arrays to a framework.
    buffers = {
        i: cl.to_device(x.reshape(-1).view("u1"))
        for i, x in enumerate(arguments)
        if isinstance(x, np.ndarray)
    }
    values = [buffers[i].address if i in buffers else x for i, x in enumerate(arguments)]
    with cl.load(cl.Image(case.ptx().encode())) as module:
        module[case.kernel].launch(
            *values,
            grid=case.grid,
            block=case.block,
            shared_memory=case.shared,
            cooperative=case.cooperative,
        )
        cl.synchronize()
        return [
            buffers[i].numpy().view(x.dtype).reshape(x.shape) if i in buffers else x
            for i, x in enumerate(arguments)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, culaunch_driver: str) -> None:
    case.check(case.make(), run(case))


@pytest.mark.gpu
@pytest.mark.parametrize("case", SAME, ids=lambda case: case.name)
def test_emulator_and_gpu_agree_bit_for_bit(case: Case) -> None:
    with testing.use_driver("emulator"):
        emulated = run(case)
    with testing.use_driver("cuda"):
        real = run(case)
    for index, (ours, theirs) in enumerate(zip(emulated, real, strict=True)):
        if isinstance(ours, np.ndarray):
            ours, theirs = (x.reshape(-1).view("u1") for x in (ours, theirs))
            wrong = np.flatnonzero(ours != theirs)
            assert not len(wrong), f"argument {index}: {len(wrong)} bytes differ, at {wrong[:8]}"
