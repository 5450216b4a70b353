"""If what a program stores depends on memory that nobody wrote, the program is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import random_ptx
from emulate import launch
from emulator_internals import Fault, memory_rules
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from culaunch._emulator.memory import scratch


def hide(text: str, word: int, lane: int) -> str:
    """Make one input of one lane a read of shared memory that nobody writes."""
    load = f"ld.global.b32 %r{word}, [%at+{4 * word}];"
    assert load in text
    text = text.replace(
        load,
        f"{load}\nsetp.eq.u32 %q0, %me, {lane}; @%q0 ld.shared.b32 %r{word}, [hidden];",
    )
    return text.replace(".b8 box[256];", ".b8 box[256]; .shared .align 8 .b8 hidden[8];", 1)


def run(text: str, seed: int, fill: int, monkeypatch: pytest.MonkeyPatch, check: bool) -> Any:
    make = scratch.Scratch.__init__

    def filled(self: Any, space: str, rows: int, size: int) -> None:
        make(self, space, rows, size)
        if space == "shared":
            self.data.by_size[4][:] = np.uint32(fill)

    out = np.zeros((random_ptx.THREADS, random_ptx.OUTPUTS), np.uint32)
    with monkeypatch.context() as patch:
        patch.setattr(scratch.Scratch, "__init__", filled)
        # Here there is no padding: every undefined bit counts.
        patch.setattr(
            memory_rules, "_every_byte", lambda bits: (bits != 0).reshape(len(bits), -1).any(1)
        )
        launch(
            text,
            "k",
            random_ptx.inputs(seed),
            out,
            block=(random_ptx.THREADS,),
            check_uninitialized=check,
            time_limit=30,
        )
    return out


@pytest.mark.slow
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(seed=3630281042, word=3, lane=23, fills=(1065353216, 1302775007))
@given(
    seed=st.integers(0, 2**32),
    word=st.integers(0, 7),
    lane=st.integers(0, 63),
    fills=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)
def test_a_result_that_depends_on_unwritten_memory_is_reported(
    monkeypatch: pytest.MonkeyPatch, seed: int, word: int, lane: int, fills: tuple[int, int]
) -> None:
    text = hide(random_ptx.program(seed), word, lane)
    first, second = (run(text, seed, fill, monkeypatch, False) for fill in fills)
    try:
        run(text, seed, fills[0], monkeypatch, True)
    except Fault as fault:
        assert "an undefined value" in fault.reason  # noqa: PT017
        assert "4-byte read of shared address 0x100" in fault.reason  # noqa: PT017
    else:
        np.testing.assert_array_equal(first, second)
