"""A seed picks the order of blocks and warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corpus import CASES
from corpus._case import cuda
from emulate import launch
from emulator_internals import options_from_text

# Every warp of every block takes a ticket, and notes who has it.
TICKETS = """.version 8.0
.target sm_80
.address_size 64
.visible .entry tickets(.param .u64 out) {
  .reg .b64 %o, %a; .reg .b32 %t, %b, %n, %w; .reg .pred %p;
  ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; and.b32 %w, %t, 31; setp.ne.u32 %p, %w, 0;
  @%p exit;
  shr.u32 %t, %t, 5; mov.u32 %b, %ctaid.x; mad.lo.u32 %b, %b, 100, %t; add.u32 %b, %b, 1;
  atom.global.add.u32 %n, [%o], 1; mad.wide.u32 %a, %n, 4, %o; st.global.u32 [%a+4], %b; ret;
}
"""
GRID, WARPS = 6, 4
INITIAL = [100 * block + warp + 1 for block in range(GRID) for warp in range(WARPS)]


def tickets(**options: Any) -> list[int]:
    out = np.zeros(GRID * WARPS + 1, np.uint32)
    launch(TICKETS, "tickets", out, grid=(GRID,), block=(32 * WARPS,), **options)
    assert out[0] == GRID * WARPS
    order: list[int] = out[1:].tolist()
    return order


def test_without_a_seed_the_order_is_that_of_the_grid() -> None:
    assert tickets() == INITIAL


@pytest.mark.parametrize("lanes", [128, 1 << 15])
def test_the_same_seed_gives_the_same_order(lanes: int) -> None:
    orders = [tickets(seed=seed, lanes=lanes) for seed in range(6)]
    assert orders == [tickets(seed=seed, lanes=lanes) for seed in range(6)]
    assert all(sorted(order) == INITIAL for order in orders)
    assert len({tuple(order) for order in orders}) == 6


def test_warps_of_a_block_change_places_too() -> None:
    firsts = set()
    for seed in range(12):
        order = [ticket for ticket in tickets(seed=seed, lanes=128) if ticket < 100]
        firsts.add(order[0])
    assert len(firsts) > 1


def test_the_compiled_engine_leaves_seeds_to_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = tickets(seed=3)
    monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", "compiled")
    assert tickets(seed=3) == wanted


def test_reports_name_the_block_of_the_grid() -> None:
    """A block keeps its index, whatever its turn is."""
    out, x = np.zeros(512, np.int32), np.zeros(512, np.int32)
    for seed in range(4):
        launch(
            cuda("global_races.cu"), "wait_of_one_thread", out, x * 0, grid=(4,), block=(64,),
            seed=seed, check_races=True, time_limit=60,
        )  # fmt: skip


@pytest.mark.slow
@pytest.mark.sweep(8)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right_kernels_do_not_depend_on_the_seed(case: Any) -> None:
    for seed in (1, 2):
        before, after = case.make(), case.make()
        launch(
            case.ptx(), case.kernel, *after, grid=case.grid, block=case.block, shared=case.shared,
            cooperative=case.cooperative, seed=seed, check_races=True,
        )  # fmt: skip
        case.check(before, after)


def test_the_environment_sets_a_seed() -> None:
    assert options_from_text("seed=0").seed == 0
    assert options_from_text("check_races, seed = 7").seed == 7
    assert options_from_text("").seed is None
    for text in ("seed", "seed=-1", "seed=x", "seed=1.5"):
        with pytest.raises(ValueError, match="seed must be a int"):
            options_from_text(text)
