"""The limits of the blocks of a multiprocessor, against numbers that were worked out by hand."""

import itertools

import pytest

from culaunch._profile.occupancy_limits import BlockNeeds, Multiprocessor, limits_of

# An H100: 64 warps, 32 blocks, 64 Ki registers, 228 KiB of shared memory, 1 KiB kept per block.
H100 = Multiprocessor(threads=2048, blocks=32, registers=65536, shared=233472, reserved=1024)


@pytest.mark.parametrize(
    ("needs", "blocks", "fraction", "by", "hint"),
    [
        # 8 warps of 1,024 registers: 64 warps fit in registers, and 8 blocks in threads.
        (BlockNeeds(256, 32, 0), 8, 1.0, ("threads", "registers"), ""),
        (BlockNeeds(256, 16, 0), 8, 1.0, ("threads",), ""),
        # 40 registers are 1,280 of a warp: 12 warps in a quarter, 48 of all, 6 blocks. For 7
        # blocks, 56 warps: 14 in a quarter of 16,384, so 1,170 registers, that is 1,024: 32.
        (BlockNeeds(256, 40, 0), 6, 0.75, ("registers",),
         "8 fewer registers of a thread: 7 blocks"),
        # 32 blocks of one warp: no more blocks, whatever they take.
        (BlockNeeds(32, 16, 0), 32, 0.5, ("blocks",), ""),
        # 77,888 and 1,024 bytes: 2 blocks take 157,824 of 233,472. For 3: 77,824 each, 76,800 own.
        (BlockNeeds(128, 32, 77888), 2, 0.125, ("shared memory",),
         "1,088 fewer bytes of shared memory: 3 blocks"),
        (BlockNeeds(128, 32, 76864), 2, 0.125, ("shared memory",),
         "64 fewer bytes of shared memory: 3 blocks"),
        # 24 warps: 2 blocks in 64. A third needs blocks of 21 warps.
        (BlockNeeds(768, 24, 0), 2, 0.75, ("threads",), "96 fewer threads of a block: 3 blocks"),
        # 255 registers are 8,192 of a warp: 2 warps in a quarter, 8 of all.
        (BlockNeeds(512, 255, 0), 0, 0.0, ("registers",),
         "127 fewer registers of a thread: 1 block"),
    ],
)  # fmt: skip
def test_known_cases(needs, blocks, fraction, by, hint):
    found = limits_of(needs, H100)
    assert (found.blocks, found.fraction, found.by, found.hint) == (blocks, fraction, by, hint)


def test_a_hint_is_true_and_as_small_as_possible():
    """One more block fits after the change of the hint, and not after a smaller one."""
    sizes, counts, amounts = (32, 96, 256, 640, 1024), (16, 33, 64, 128), (0, 5000, 40000, 100000)
    hints = 0
    for threads, registers, shared in itertools.product(sizes, counts, amounts):
        needs = BlockNeeds(threads, registers, shared)
        found = limits_of(needs, H100)
        if not found.hint or len(found.by) > 1:
            continue
        hints += 1
        fewer = int(found.hint.split()[0].replace(",", ""))
        field = {"registers": "registers", "shared memory": "shared", "threads": "threads"}
        name = field[found.by[0]]
        values = {"threads": threads, "registers": registers, "shared": shared}
        changed = limits_of(BlockNeeds(**{**values, name: values[name] - fewer}), H100)
        others = [count for count in changed.by if count not in found.by]
        assert changed.blocks > found.blocks or others
        less = limits_of(BlockNeeds(**{**values, name: values[name] - fewer + 1}), H100)
        assert less.blocks == found.blocks
    assert hints > 20
