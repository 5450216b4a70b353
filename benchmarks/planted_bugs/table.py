"""The planted bugs: for each its kernel, its launch, and the report that is right."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
# The sources, and the architecture that each needs.
ARCH = {"bulk_copies": "compute_90"}
SPINS = 0.5  # seconds: a launch with a bug that spins is stopped then


@dataclass(frozen=True)
class Array:
    """An array of int32: 0, 1, 2, ..., or `value`; an argument is a view of its first `shown`."""

    size: int
    value: int | None = None
    shown: int | None = None


@dataclass(frozen=True)
class Unwritten:
    """An array of int32 that was allocated, and never written."""

    size: int


@dataclass(frozen=True)
class Bug:
    """A kernel with a bug.

    Parameters
    ----------
    kind : str
        The kind of the right report: one of ``culaunch.testing.Report.kind``.
    name : str
        The kernel.
    arguments : tuple
        Arrays and ints.
    grid, block, launch
        The launch configuration.
    checks : tuple of str
        The checks of the emulator that find it, besides those that are on by default.
    profiled : bool
        Whether ``testing.profile`` shows it instead of a check: a kernel writes a part of an array.
    missed : str
        Why the emulator does not find it; empty if it does.
    header : str
        The file that the report names, if the kernel waits in a function of a header.
    """

    source: str
    kind: str
    name: str
    arguments: tuple[Any, ...] = ()
    block: int = 64
    grid: int = 1
    launch: dict[str, Any] = field(default_factory=dict)
    checks: tuple[str, ...] = ()
    profiled: bool = False
    missed: str = ""
    header: str = ""

    @property
    def place(self) -> str:
        """The place that the report should name, as ``file:line``, or a header's name."""
        return self.header or f"{self.source}.cu:{self._line()}"

    def _line(self) -> int:
        text = (FOLDER / f"{self.source}.cu").read_text()
        body = re.search(rf"^KERNEL {self.name}\(.*?^}}.*?$", text, re.MULTILINE | re.DOTALL)
        assert body is not None, self.name
        marked = text.find("// here", body.start(), body.end())
        if marked < 0:  # in a function that several kernels call
            marked = re.search(rf"// here: .*\b{self.name}\b", text).start()
        return text.count("\n", 0, marked) + 1


RACES = ("check_races",)
NEIGHBORS = "variables of one memory are not told apart"
WAITS = {"time_limit": SPINS}

I64, I32 = Array(64), Array(32)

# fmt: off
BUGS = [
    Bug("bounds", "out-of-bounds", "past_the_end", (Array(50), 50)),
    Bug("bounds", "out-of-bounds", "before_the_start", (I64, I64, 64)),
    Bug("bounds", "out-of-bounds", "grid_too_large", (Array(100), 100), grid=2),
    Bug("bounds", "not-covered", "grid_too_small", (Array(200, 0), 200), grid=2,
        profiled=True),
    Bug("bounds", "out-of-bounds", "wide_tail", (Array(256), Array(62), 62)),
    Bug("bounds", "out-of-bounds", "histogram_bin", (Array(32, 0), I64, 32)),
    Bug("bounds", "null-pointer", "null_pointer", (I64, 64), block=1),
    Bug("bounds", "beyond-view", "view_past_the_end", (I64, Array(100, shown=64), 64),
        checks=("check_views",)),
    Bug("bounds", "out-of-bounds", "variable_past_the_end", (I32, 32), block=32),
    Bug("bounds", "out-of-bounds", "shared_past_the_end", (I64, 1)),
    Bug("bounds", "out-of-bounds", "dynamic_shared_too_small", (I64,),
        launch={"shared_memory": 256}),
    Bug("bounds", "beyond-variable", "shared_neighbor", (I32, 32), block=32,
        checks=("check_variables",)),
    Bug("bounds", "neighbor", "member_overrun", (I32, 32), block=32,
        missed="members of a structure are one variable in PTX"),
    Bug("bounds", "out-of-bounds", "local_past_the_end", (I64, I64, 7), block=32),
    Bug("bounds", "neighbor", "local_neighbor", (I64, I64, 8), block=8, missed=NEIGHBORS),
    Bug("bounds", "misaligned", "misaligned_double", (I64,), block=16),
    Bug("bounds", "misaligned", "misaligned_shared", (I64, 5), launch={"shared_memory": 512}),

    Bug("uninitialized", "uninitialized", "shared_unwritten", (I64,)),
    Bug("uninitialized", "uninitialized", "shared_accumulator", (I64, I64)),
    Bug("uninitialized", "uninitialized", "halo_unwritten", (I64, I64)),
    Bug("uninitialized", "uninitialized", "shuffle_from_outside", (I64,)),
    Bug("uninitialized", "uninitialized", "local_unwritten", (I64, I64, 8), block=8,
        checks=("check_unwritten",)),
    Bug("uninitialized", "uninitialized", "global_unwritten", (I64, Unwritten(64)),
        checks=("check_unwritten",)),

    Bug("shared_races", "race", "no_barrier", (I64,), checks=RACES),
    Bug("shared_races", "race", "tile_overwritten", (I64, Array(256)), checks=RACES),
    Bug("shared_races", "race", "old_reduction", (I64,), checks=RACES),
    Bug("shared_races", "race", "zero_then_count", (I64,), checks=RACES),
    Bug("shared_races", "race", "two_writers", (I64,), checks=RACES),
    Bug("shared_races", "race", "scan_in_place", (I64,), checks=RACES),
    Bug("shared_races", "race", "named_barriers_apart", (I64,), checks=RACES),
    Bug("shared_races", "race", "copy_without_wait", (I64, I64), checks=RACES),
    Bug("shared_races", "race", "copy_of_the_wrong_stage", (I64, Array(128)), checks=RACES),

    Bug("bulk_copies", "race", "arrive_without_wait", (I64,), checks=RACES),
    Bug("bulk_copies", "timeout", "wrong_parity", (I64,), launch=WAITS),
    Bug("bulk_copies", "race", "bulk_without_wait", (I64, I64), checks=RACES),
    Bug("bulk_copies", "race", "store_without_proxy_fence", (I64,), checks=RACES),
    Bug("bulk_copies", "race", "store_source_reused", (I64,), checks=RACES),
    Bug("bulk_copies", "timeout", "too_few_bytes", (I64, I64), launch=WAITS),

    Bug("global_races", "race", "blocks_add", (Array(1, 0), I64), block=32, grid=2, checks=RACES),
    Bug("global_races", "race", "threads_exchange", (I64,), checks=RACES),
    Bug("global_races", "race", "halo_of_the_next_block", (I64, I64), block=32, grid=2,
        checks=RACES),
    Bug("global_races", "race", "last_block_sums", (I32, Array(1, 0), I32), block=32, grid=8,
        checks=RACES),
    Bug("global_races", "race", "fence_of_the_block", (Array(1), Array(1, 0), Array(1)), block=1,
        grid=2, checks=RACES),
    Bug("global_races", "race", "scope_of_the_block", (Array(1, 0),), grid=2, checks=RACES),
    Bug("global_races", "race", "grid_without_sync", (I64, I64), block=32, grid=2,
        launch={"cooperative": True}, checks=RACES),

    Bug("barriers", "barrier-divergence", "half_a_barrier", (I64,)),
    Bug("barriers", "barrier-divergence", "barrier_in_both_branches", (I64,)),
    Bug("barriers", "barrier-divergence", "barrier_in_a_loop", (I64,)),
    Bug("barriers", "deadlock", "barrier_count_too_large", (I64,)),
    Bug("barriers", "warp-mask", "shuffle_mask_without_caller", (I64,), block=32),
    Bug("barriers", "deadlock", "ballot_in_a_branch", (I64,), block=32),
    Bug("barriers", "timeout", "grid_sync_of_some", (I64,), block=32, grid=2,
        launch={"cooperative": True, **WAITS}, header="sync.h"),
    Bug("barriers", "timeout", "lock_never_released", (Array(1, 0), I64), launch=WAITS),

    Bug("heap", "invalid-free", "double_free", (), block=1),
    Bug("heap", "use-after-free", "use_after_free", (I64,), block=1),
    Bug("heap", "out-of-bounds", "heap_past_the_end", (I64, 16), block=1),
    Bug("heap", "leak", "leak", (I64,), block=1, checks=("check_leaks",)),

    Bug("arithmetic", "division-by-zero", "division_by_zero", (I64, I64),
        checks=("check_division",)),
    Bug("arithmetic", "overflow", "signed_overflow", (I64, 1 << 30),
        checks=("check_overflow",)),
    Bug("arithmetic", "out-of-bounds", "overflowed_index", (I64, (1 << 26) + 1)),
]
# fmt: on
