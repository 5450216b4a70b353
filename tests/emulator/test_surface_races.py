"""Races in CUDA arrays: accesses of surfaces that nothing orders."""

from __future__ import annotations

import numpy as np
import pytest
from texture_cases import SURFACE, Image, run

import culaunch as cl
from culaunch import testing

OWN = "{%c0, %c1}"  # four bytes for each thread, in rows of 64
AT_0 = "{0, 0}"
WRITE = "sust.b.2d.b32.{clamp} [%unit, {place}], {value};"


def write(place: str, value: str, clamp: str = "trap") -> str:
    return WRITE.replace("{clamp}", clamp).replace("{place}", place).replace("{value}", value)


def read(place: str) -> str:
    return f"suld.b.2d.b32.trap %o0, [%unit, {place}];"


CHANGE = "add.u32 %o0, %i, 1000;"
NEXT = (
    ".reg .b32 %m; add.u32 %n, %i, 1; and.b32 %n, %n, 127; shr.u32 %m, %n, 6;"
    "and.b32 %n, %n, 63; shl.b32 %n, %n, 2;"
)


def launch(body: str, threads: int = 128) -> np.ndarray:
    """Run code in blocks of 64 threads on an array of two rows of 64 words."""
    texels = np.arange(128, dtype="u4").reshape(1, 2, 64, 1)
    words = np.zeros((threads, 4), "i4")
    words[:, 0], words[:, 1] = np.arange(threads) % 64 * 4, np.arange(threads) // 64
    with testing.use_driver("emulator"), testing.emulator_options(check_races=True):
        image = Image(texels, depth=0, height=2, flags=SURFACE)
        try:
            run(body, int(image.driver.surface_create(0, image.resource())), words, 1)
        finally:
            testing.reset_emulator()
        return image.numpy().reshape(-1)


@pytest.mark.parametrize(
    ("body", "threads"),
    [
        (write(OWN, "%i") + read(OWN) + write(OWN, "%o0"), 128),
        (read(AT_0), 128),
        (write(AT_0, "7"), 128),  # the same value
        ("sured.b.add.2d.u32.trap [%unit, {0, 0}], 1;", 128),
        (CHANGE + write(OWN, "%o0") + "bar.sync 0;" + NEXT + read("{%n, %m}"), 64),
        # Nothing outside is accessed.
        ("mov.b32 %o0, %i;" + write("{-4, 0}", "%o0", "zero"), 128),
    ],
    ids=["own", "reads", "same", "reductions", "barrier", "outside"],
)  # fmt: skip
def test_accesses_that_do_not_race(body: str, threads: int) -> None:
    launch(body, threads)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (write(AT_0, "%i"), r"writes a CUDA array at byte 0x0, which thread .* wrote with no"),
        (read(AT_0) + "add.u32 %o0, %o0, 1;" + write(AT_0, "%i"), "which .* read with no"),
        (
            CHANGE + write(OWN, "%o0") + NEXT + read("{%n, %m}"),
            r"reads a CUDA array at byte 0x[0-9a-f]+, which thread .* wrote with no",
        ),
        (
            "sured.b.add.2d.u32.trap [%unit, {0, 0}], 1;" + read(AT_0),
            "reads a CUDA array at byte 0x0, which .* updated with no",
        ),
        (write("{-4, 0}", "%i", "clamp"), "writes a CUDA array at byte 0x0"),
    ],
    ids=["writes", "written", "read", "reduction", "clamped"],
)  # fmt: skip
def test_races(body: str, words: str) -> None:
    with pytest.raises(cl.DriverError, match=words) as caught:
        launch(body)
    assert "race" in str(caught.value)


def test_two_blocks_race() -> None:
    with pytest.raises(cl.DriverError, match=r"of block .* with no release and acquire"):
        launch(".reg .b32 %b; mov.u32 %b, %ctaid.x;" + write(AT_0, "%b"))
