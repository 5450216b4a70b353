"""An instruction is one record beside its decoder; what a record lacks is found here."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from emulate import launch
from emulator_internals import INSTRUCTIONS, PtxImage, decodes, definition

import culaunch as cl

if TYPE_CHECKING:
    from emulator_internals import Instruction

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
# Forms for which lanes of a warp wait for each other, and others that end a block or do neither.
SYNCHRONOUS = """
    shfl.sync.idx.b32 %r1, %r2, %r3, %r4, %r5;
    vote.sync.ballot.b32 %r1, %p1, %r2;
    match.any.sync.b32 %r1, %r2, %r3;
    redux.sync.add.u32 %r1, %r2, %r3;
    elect.sync %r1|%p1, %r2;
    bar.warp.sync %r1;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r1};
    movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d1, %d2}, {%d3}, {%d4}, {%d1, %d2};
    wgmma.fence.sync.aligned;
    tcgen05.wait::ld.sync.aligned;
    wmma.store.d.sync.aligned.row.m8n8k4.shared.f64 [%r9], {%d1, %d2}, %r1;
"""


def parsed(lines: str) -> list[Instruction]:
    declared = ".reg .b32 %r<10>; .reg .f64 %d<9>; .reg .pred %p<9>; .reg .b64 %q<9>;"
    module = PtxImage(f"{HEAD}.entry k() {{ {declared} {lines} }}")
    return module.syntax.functions["k"].instructions


@pytest.mark.parametrize("line", SYNCHRONOUS.strip().splitlines())
def test_lanes_wait_for_each_other_before_a_synchronous_form(line: str) -> None:
    (instruction,) = parsed(line)
    assert definition(instruction).warp_mask(instruction) is not None


def test_every_instruction_with_a_synchronous_form_is_in_the_list_above() -> None:
    named = {instruction.name for instruction in parsed(SYNCHRONOUS)}
    with_masks = {
        name
        for name, known in INSTRUCTIONS.items()
        if known.warp_mask.__name__ != "<lambda>"  # the default: lanes wait for none
    }
    assert named == with_masks


def test_one_thread_commits_to_tcgen05_alone() -> None:
    (instruction,) = parsed("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%q1];")
    assert definition(instruction).warp_mask(instruction) is None


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("ld.volatile.global.u32 %r1, [%q1];", True),
        ("ld.acquire.gpu.global.u32 %r1, [%q1];", True),
        ("ld.global.u32 %r1, [%q1];", False),
        ("atom.global.add.u32 %r1, [%q1], %r2;", True),
        ("red.global.add.u32 [%q1], %r2;", False),
        ("nanosleep.u32 %r1;", True),
        ("mbarrier.try_wait.shared.b64 %p1, [%r1], %q1;", True),
        ("mbarrier.arrive.shared.b64 %q1, [%r1];", False),
    ],
)
def test_what_a_thread_may_wait_with(line: str, waits: bool) -> None:
    (instruction,) = parsed(line)
    assert definition(instruction).waits(instruction) is waits


def test_a_fact_of_an_instruction_cannot_be_left_out() -> None:
    with pytest.raises(TypeError, match="results"):
        decodes("made.up", effects=True, waits=False)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="effects"):
        decodes("made.up", results=1, waits=False)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="waits"):
        decodes("made.up", results=1, effects=True)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        ("ld", "ld.shared.u32 %r1, [s];", "memory"),
        ("activemask", "activemask.b32 %r1;", "other lanes"),
    ],
)
def test_an_effect_that_a_definition_denies_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, line: str, said: str
) -> None:
    denied = dataclasses.replace(INSTRUCTIONS[name], effects=False)
    monkeypatch.setitem(INSTRUCTIONS, name, denied)
    text = f"{HEAD}.entry k() {{ .reg .b32 %r<9>; .reg .b64 %q<9>; .shared .b32 s[8];"
    with pytest.raises(cl.InternalError) as caught:
        launch(f"{text} {line} }}", "k")
    assert f"has effects: {{{said!r}}}" in str(caught.value.__cause__)
