"""The undefined bits in an instruction's record are compared with the instruction's results.

Each instruction runs with operands that have some undefined bits. Then it runs again with other
values for those bits: a bit of a result that changes must have been marked.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import INSTRUCTIONS, Fault, PtxImage, computes, decodes, engine

import culaunch as cl
from culaunch._emulator.decode.undefined_bits import MOVES, Flow, Moves

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator_internals import Group, Lanes

    from culaunch._emulator.undefined.plan import Plan

# In these each of %a, %b and %c has undefined bits, %la and %lb are as wide as two, and %p is
# undefined in some lanes. One line for each instruction that computes, or that moves bits between
# lanes; more where the forms differ in what they do with undefined bits.
FORMS = """
    createpolicy.fractional.L2::evict_last.b64 %lx, 0.5;
    rem.u32 %x, %a, %b;
    sad.u32 %x, %a, %b, %c;
    mul24.lo.u32 %x, %a, %b;
    mad24.lo.u32 %x, %a, %b, %c;
    dp4a.u32.u32 %x, %a, %b, %c;
    dp2a.lo.u32.u32 %x, %a, %b, %c;
    add.cc.u32 %x, %a, %b;
    addc.u32 %x, %a, %b;
    subc.u32 %x, %a, %b;
    madc.lo.u32 %x, %a, %b, %c;
    and.b32 %x, %a, %b;
    or.b32 %x, %a, 0x0F0F0F0F;
    xor.b32 %x, %a, %a;
    not.b32 %x, %a;
    cnot.b32 %x, %a;
    lop3.b32 %x, %a, %b, %c, 0xE8;
    shl.b32 %x, %a, 3;
    shl.b32 %x, 3, %a;
    shr.s32 %x, %a, 3;
    shr.u32 %x, %a, %a;
    shf.l.wrap.b32 %x, %a, %b, 5;
    popc.b32 %x, %a;
    clz.b32 %x, %a;
    brev.b32 %x, %a;
    bfind.u32 %x, %a;
    fns.b32 %x, %a, 3, 2;
    bfe.s32 %x, %a, 4, 9;
    bfe.s32 %x, 1234567, %a, 9;
    bfi.b32 %x, %a, %b, 4, 9;
    bmsk.clamp.b32 %x, %a, %b;
    szext.wrap.u32 %x, %a, %b;
    prmt.b32 %x, %a, %b, 0x3715;
    prmt.b32 %x, %a, %b, %c;
    setp.lt.u32 %q, %a, %b;
    setp.eq.u32 %q, %a, 0;
    setp.ne.and.u32 %q, %a, 17, %p;
    setp.lt.or.f32 %q, %a, %b, %p;
    set.lt.u32.u32 %x, %a, %b;
    selp.b32 %x, %a, %b, %p;
    selp.b32 %x, 5, 7, %p;
    slct.b32.s32 %x, %a, %b, %c;
    cvt.u16.u32 %h, %a;
    cvt.s64.s32 %lx, %a;
    cvt.sat.u8.s32 %x, %a;
    cvt.rn.f32.u32 %x, %a;
    cvta.shared.u64 %lx, %la;
    isspacep.shared %q, %la;
    mapa.shared::cluster.u32 %x, %a, 0;
    getctarank.shared::cluster.u32 %x, %a;
    mov.b32 %x, %a;
    mov.b64 %lx, {%a, %b};
    add.u32 %x, %a, %b;
    sub.u32 %x, %a, %b;
    mul.wide.u32 %lx, %a, %b;
    mad.lo.u32 %x, %a, %b, %c;
    div.u32 %x, %a, %b;
    min.u32 %x, %a, %b;
    max.s32 %x, %a, %b;
    abs.s32 %x, %a;
    neg.f32 %x, %a;
    fma.rn.f32 %x, %a, %b, %c;
    rcp.rn.f32 %x, %a;
    sqrt.rn.f32 %x, %a;
    rsqrt.approx.f32 %x, %a;
    ex2.approx.f32 %x, %a;
    lg2.approx.f32 %x, %a;
    sin.approx.f32 %x, %a;
    cos.approx.f32 %x, %a;
    tanh.approx.f32 %x, %a;
    copysign.f32 %x, %a, %b;
    testp.finite.f32 %q, %a;
    vadd4.u32.u32.u32 %x, %a, %b, %c;
    vsub4.u32.u32.u32 %x, %a, %b, %c;
    vset4.u32.s32.lt %x, %a, %b, %c;
    vmin4.u32.u32.u32 %x, %a, %b, %c;
    vmax4.u32.u32.u32 %x, %a, %b, %c;
    vabsdiff4.u32.u32.u32 %x, %a, %b, %c;
    vavrg4.u32.u32.u32 %x, %a, %b, %c;
    vadd2.u32.u32.u32 %x, %a, %b, %c;
    vsub2.u32.u32.u32 %x, %a, %b, %c;
    vset2.u32.s32.lt %x, %a, %b, %c;
    vmin2.u32.u32.u32 %x, %a, %b, %c;
    vmax2.u32.u32.u32 %x, %a, %b, %c;
    vabsdiff2.u32.u32.u32 %x, %a, %b, %c;
    vavrg2.u32.u32.u32 %x, %a, %b, %c;
    movmatrix.sync.aligned.m8n8.trans.b16 %x, %a;
    mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%x, %y}, {%a}, {%b}, {%c, %c};
    wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32 {%x, %y}, {%a}, {%b}, {%c, %c};
    shfl.sync.bfly.b32 %x|%q, %a, 5, 31, -1;
    shfl.sync.idx.b32 %x, %a, %b, 31, -1;
    vote.sync.ballot.b32 %x, %p, -1;
    vote.sync.any.pred %q, %p, -1;
    vote.sync.uni.pred %q, %p, -1;
    match.any.sync.b32 %x, %a, -1;
    redux.sync.add.u32 %x, %a, -1;
    elect.sync %x|%q, -1;
"""
# No operand of these is a register that could be undefined.
WITHOUT_OPERANDS = {"createpolicy", "elect"}
# The flows of what goes through memory: test_undefined.py has them.
ELSEWHERE = {
    Flow.LOADS,
    Flow.LOADS_MATRIX,
    Flow.MUST_BE_DEFINED,
    Flow.STORES,
    Flow.STORES_MATRIX,
    Flow.UPDATES,
}
KERNEL = """.version 8.0
.target sm_90
.address_size 64
.entry k() {{
    .shared .b32 hidden[4];
    .reg .b32 %a, %b, %c, %u, %m, %t, %x, %y; .reg .b64 %la, %lb, %lx; .reg .b16 %h;
    .reg .pred %p, %q;
    mov.u32 %t, %tid.x;
    ld.shared.u32 %u, [hidden];
    mul.lo.u32 %m, %t, 0x9E3779B1;
    and.b32 %a, %u, 0x00F00011; or.b32 %a, %a, 0x40008000; xor.b32 %a, %a, %t;
    and.b32 %b, %u, %m; and.b32 %y, %t, 3; setp.eq.u32 %q, %y, 1; @%q mov.u32 %b, %m;
    and.b32 %c, %u, 0x80000000; or.b32 %c, %c, %t;
    mov.b64 %la, {{%a, %t}}; mov.b64 %lb, {{%t, %b}};
    and.b32 %y, %c, 0x80000001; setp.ge.u32 %p, %y, 1;
    add.cc.u32 %y, %a, 0xFFFFFFF0;
    {line}
}}"""


def lines() -> list[str]:
    return [line.strip() for line in FORMS.strip().splitlines()]


@pytest.fixture(autouse=True)
def checked_rules(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Let every rule be checked as it runs; return the instructions for which one did."""
    make_plan = engine.make_plan
    checked: set[str] = set()

    def make(*arguments: Any) -> Plan:
        plan = make_plan(*arguments)
        rule = plan.rule

        def check(context: Any, group: Group, plan: Plan, active: Lanes | None) -> Any:
            taints = rule(context, group, plan, active)
            if plan.flow not in ELSEWHERE:
                checked.add(plan.instruction.name)
                hold_against(plan, group, taints)
            return taints

        plan.rule = check
        return plan

    monkeypatch.setattr(engine, "make_plan", make)
    return checked


def hold_against(plan: Plan, group: Group, taints: Any) -> None:
    random = np.random.default_rng(0)
    first = results(plan, group, lambda bits: np.zeros_like(bits))
    for _ in range(8):
        # The undefined bits of one lane only, then of all, because changes may cancel out.
        lanes = random.integers(0, 2, group.n).astype(bool)

        def choice(bits: Lanes, lanes: Lanes = lanes) -> Lanes:
            chosen = random.integers(0, 256, bits.nbytes, np.uint8).view(bits.dtype.str)
            chosen = chosen.reshape(bits.shape).astype(bits.dtype)
            return np.where(lanes if bits.ndim == 1 else lanes[:, None], chosen, bits)

        other = results(plan, group, choice)
        for slot, before, after in zip(plan.writes, first, other, strict=True):
            marked = taints[slot].bits if slot in taints else np.zeros_like(before)
            missed = (before ^ after) & ~marked
            assert not missed.any(), f"{plan.instruction.opcode} marks too little: {missed}"


def results(plan: Plan, group: Group, choose: Callable[[Lanes], Lanes]) -> list[Lanes]:
    copy = group.with_registers(list(group.regs))
    for slot, taint in group.undefined.items():
        value = np.broadcast_to(group.regs[slot], taint.bits.shape)
        copy.regs[slot] = value ^ (taint.bits & choose(taint.bits))
    plan.run(copy)
    return [
        np.broadcast_to(copy.regs[slot], (group.n, *copy.regs[slot].shape[1:]))
        for slot in plan.writes
    ]


@pytest.mark.parametrize("line", lines())
def test_what_depends_on_undefined_bits_is_marked(checked_rules: set[str], line: str) -> None:
    name = line.split(".", maxsplit=1)[0].split(maxsplit=1)[0]
    launch(KERNEL.format(line=line), "k")
    assert name in checked_rules or name in WITHOUT_OPERANDS


# How many operands these have depends on their modifiers: their decoders look.
ANY_COUNT = {"createpolicy", "getctarank", "mapa"}


@pytest.mark.parametrize("line", lines())
def test_an_operand_too_few_is_found_when_the_module_is_loaded(line: str) -> None:
    """What an instruction's record has no word for yet: ``culaunch._emulator.ptx.check``."""
    name = line.split(".", maxsplit=1)[0].split(maxsplit=1)[0]
    if INSTRUCTIONS[name].effects or name in ANY_COUNT:
        return
    with pytest.raises(cl.ImageError, match=f"{name} has "):
        PtxImage(KERNEL.format(line=f"{line.split(maxsplit=1)[0]} %x;"))


def test_every_instruction_is_above_or_goes_through_memory() -> None:
    """A new instruction needs a line there, or says that it does something else."""
    named = {line.split(".")[0].split()[0] for line in lines()}
    for name, known in INSTRUCTIONS.items():
        if known.undefined is None:
            assert known.decode is None, f"{name} says nothing of undefined bits"
        elif name not in named:
            # A constant answer: the forms of one that does not ask have no others.
            assert known.effects or known.undefined(None) is Flow.IGNORES, name  # type: ignore[arg-type]


def test_what_an_instruction_does_with_undefined_bits_cannot_be_left_out() -> None:
    with pytest.raises(TypeError, match="undefined"):
        computes("made.up")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="undefined"):
        decodes("made.up", results=1, effects=True, waits=False)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("add.u32 %x, %a, %b;", Flow.BITWISE),
        ("shl.b32 %x, %a, %b;", MOVES),
        ("popc.b32 %x, %a;", Flow.IGNORES),
        ("redux.sync.add.u32 %x, %b, -1;", Flow.COMPUTES),
    ],
)
def test_a_record_that_says_too_little_is_found(
    monkeypatch: pytest.MonkeyPatch, line: str, wrong: Flow | Moves
) -> None:
    name = line.split(".", maxsplit=1)[0]
    lie = dataclasses.replace(INSTRUCTIONS[name], undefined=lambda _: wrong)
    monkeypatch.setitem(INSTRUCTIONS, name, lie)
    with pytest.raises(cl.InternalError) as caught:
        launch(KERNEL.format(line=line), "k")
    assert "marks too little" in str(caught.value.__cause__)


# The operands that each instruction at the end of a block depends on: `End.uses` and its guard.
ENDS = """
    @%p bra OUT; OUT:
    @%p exit;
    @%p ret;
    T: .branchtargets A, B; brx.idx %a, T; A: B:
    P: .callprototype ()_ (); call %la, (), P;
    bar.sync %a;
    bar.sync 0, %a;
    bar.red.popc.u32 %x, 0, %p;
    barrier.sync %a;
"""


@pytest.mark.parametrize("line", [line.strip() for line in ENDS.strip().splitlines()])
def test_what_decides_how_a_block_ends_must_be_defined(line: str) -> None:
    with pytest.raises(Fault, match="undefined value"):
        launch(KERNEL.format(line=line), "k")


def test_every_instruction_that_ends_a_block_is_above() -> None:
    ends = {name for name, known in INSTRUCTIONS.items() if known.end is not None}
    assert {name for name in ends if not re.search(rf"\b{name}\b", ENDS)} == set()
