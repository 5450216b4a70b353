"""Tensor maps in im2col mode: columns of pixels, against a walk over the bounding box."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Fault, Options, ProgramDriver, prototype, words_of
from gpu_driver import real_function
from im2col_columns import ADD, COLUMNS, LOAD, STORE, Column, arguments, encode, ptx

import culaunch as cl
from culaunch import testing

CASES = [
    *((name, store) for name in COLUMNS for store in (LOAD, STORE)),
    ("3d", ADD), ("strides", ADD), ("swizzle", ADD),
]  # fmt: skip


def made(name: str, store: int) -> Column:
    return COLUMNS[name].stored if store else COLUMNS[name]


def exported(arch: str = "sm_90") -> Any:
    """Return the function as a program calls it."""
    driver = ProgramDriver(Device(arch))
    words = words_of(driver.cuTensorMapEncodeIm2col)
    return prototype(words)(driver.find(b"cuTensorMapEncodeIm2col"))


def emulated(
    column: Column, x: np.ndarray, y: np.ndarray, store: int, text: str = ""
) -> np.ndarray:
    raw = np.zeros(column.size, "u1")
    function = exported()
    maps = [encode(function, column, one.ctypes.data) for one in (x, y)]
    assert [code for code, _ in maps] == [0, 0]
    launch(
        text or ptx(column.rank), "column", *(bytes(one) for _, one in maps), raw,
        *arguments(column, store), shared=column.size, memory=(x, y),
        device=Device("sm_90", Options(check_races=True, time_limit=20)),
    )  # fmt: skip
    return raw


@pytest.mark.parametrize(("name", "store"), CASES)
def test_a_column_in_and_out(name: str, store: int) -> None:
    column = made(name, store)
    x, y = column.tensor(), column.tensor()
    y[...] = 3
    raw, after = column.expected(x, y, store)
    np.testing.assert_array_equal(emulated(column, x, y, store), raw)
    np.testing.assert_array_equal(y.view(f"u{y.itemsize}"), after.view(f"u{y.itemsize}"))


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "store"), CASES)
def test_a_column_is_the_gpus(name: str, store: int) -> None:
    column = made(name, store)
    x, y = column.tensor(), column.tensor()
    y[...] = 3
    given = y.copy()
    expected = emulated(column, x, y, store)
    text, function = ptx(column.rank), real_function("cuTensorMapEncodeIm2col")
    with testing.use_driver("cuda"), cl.load(cl.Image(text.encode())) as module:
        arrays = [cl.to_device(one.reshape(-1)) for one in (x, given)]
        raw = cl.zeros(column.size, "uint8")
        maps = [encode(function, column, one.address) for one in arrays]
        assert [code for code, _ in maps] == [0, 0]
        module["column"].launch(
            *(one for _, one in maps), raw.address, *arguments(column, store), grid=1, block=32,
            shared_memory=column.size,
        )  # fmt: skip
        np.testing.assert_array_equal(raw.numpy(), expected)
        np.testing.assert_array_equal(arrays[1].numpy().view("u1"), y.reshape(-1).view("u1"))


# Maps that the driver refuses, by the rules of cuda.h.
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "2 axes": ("3d", {"rank": 2}, "3 to 5 axes .got 2."),
    "corner of 4": ("4d", {"lower": (-129, 0)}, "the corner -129 is not from -128 to 127"),
    "corner of 5": ("5d", {"upper": (0, 0, 16)}, "the corner 16 is not from -16 to 15"),
    "empty": ("3d", {"lower": (4,), "upper": (-6,)}, "begins at 4, ends at 4"),
    "channels": ("3d", {"box": (260, 8)}, "260 is not from 1 to 256"),
    "pixels": ("3d", {"box": (8, 1025)}, "pixelsPerColumn is 1025"),
    "no pixels": ("3d", {"box": (8, 0)}, "pixelsPerColumn is 0"),
    "swizzle": ("spans", {"box": (16, 8)}, "64 bytes in a row, but the swizzle has 32"),
    "steps": ("4d", {"steps": (1, 9, 1, 1)}, "element stride 9"),
    "stride": ("3d", {"strides": (40, 640)}, "the stride 40 is not a multiple of 16"),
    "NaN": ("3d", {"fill": 1}, "only floats"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_driver_refuses(name: str) -> None:
    column, changed, words = REFUSED[name]
    driver = ProgramDriver(Device("sm_90"))
    function = driver.c_function(driver.cuTensorMapEncodeIm2col)
    typed = prototype(words_of(driver.cuTensorMapEncodeIm2col))(function)
    code, _ = encode(typed, COLUMNS[column], 0x1000, **changed)
    assert code == 1
    text = ctypes.c_void_p()
    driver.cuGetErrorString(1, ctypes.pointer(text))
    assert re.search(words, ctypes.string_at(text.value or 0).decode())


@pytest.mark.gpu
@pytest.mark.parametrize("name", REFUSED)
def test_the_gpus_driver_refuses_it_too(name: str) -> None:
    column, changed, _ = REFUSED[name]
    with testing.use_driver("cuda"):
        x = cl.zeros(16, "uint8")  # makes a context
        function = real_function("cuTensorMapEncodeIm2col")
        assert encode(function, COLUMNS[column], x.address, **changed)[0] == 1


@pytest.mark.parametrize(
    ("changed", "arch"),
    [({"interleave": 1}, "sm_90"), ({"steps": (1, 1, 1, 2)}, "sm_90"), ({}, "sm_80")],
    ids=["interleave", "images", "arch"],
)
def test_what_is_not_supported(changed: dict[str, Any], arch: str) -> None:
    assert encode(exported(arch), COLUMNS["4d"], 0x1000, **changed)[0] == 801


@pytest.mark.parametrize(
    ("changed", "old", "new", "words"),
    [
        ({"start": (0, 7, 0, 0)}, "", "", r"\(7, 0\) are outside .* from \(-1, -2\) to \(4, 6\)"),
        ({"start": (0, -2, 0, 0)}, "", "", "outside of the bounding box"),
        ({"offsets": (0, 256)}, "", "", "offset is 256, but the largest for 4 axes is 255"),
        ({}, "im2col.mbarrier", "tile.mbarrier", "the copy is tile, but .* tensor map is im2col"),
        ({}, "global.im2col.m", "global.im2col::w.m", "is im2col::w, but .* tensor map is im2col"),
        ({}, "", "", r"from \(-1, -2\) to \(4, 6\) of .* im2col_no_offs is not inside .*\(7, 6\)"),
        ({"lower": (0, 0), "upper": (0, 1), "start": (16, 3, 2, 0)}, "", "", "not inside"),
    ],
    ids=["after", "before", "offset", "tile", "wide", "stored", "behind"],
)
def test_what_is_wrong_with_a_column_is_said(
    changed: dict[str, Any], old: str, new: str, words: str
) -> None:
    column = COLUMNS["4d"]._replace(**changed)
    x, y = column.tensor(), column.tensor()
    with pytest.raises(Fault, match=words):
        emulated(column, x, y, STORE, ptx(4).replace(old, new, 1))


def test_the_error_of_a_map_ends_with_the_reason() -> None:
    with testing.use_driver("emulator"):
        x = cl.zeros((8, 8), "float16")
        # The emulator's device has no tensor maps by default.
        with pytest.raises(cl.DriverError, match=r"but the device is sm_80$"):
            cl.arguments.TensorMap.tiled(x, (8, 8))
