"""Interleaved tensor maps: slices of 16 or 32 bytes of channels, tiled and in im2col mode."""

from __future__ import annotations

import ctypes
import functools
import re
from itertools import product
from typing import Any, NamedTuple

import im2col_columns
import numpy as np
import pytest
from emulate import launch
from emulator_internals import Device, Options
from gpu_driver import real_function
from im2col_columns import KINDS, STORE, Map

import culaunch as cl
from culaunch import testing
from culaunch._emulator.driver.c_types import prototype
from culaunch._emulator.libcuda.c_function import words_of
from culaunch._emulator.libcuda.connect import ProgramDriver


class Slices(NamedTuple):
    """A tensor N, C/x, D, H, W, Cx, its map and a copy; axes are C/x, W, H, D, N, as in a map."""

    dtype: str
    slice: int
    extents: tuple[int, ...]
    box: tuple[int, ...]
    start: tuple[int, ...]
    steps: tuple[int, ...] = (1, 1, 1, 1, 1)
    swizzle: int = 0
    corners: tuple[tuple[int, ...], ...] = ()
    offsets: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def size(self) -> int:
        return len(self.units()) * self.slice

    def tensor(self) -> np.ndarray:
        """Return the tensor at a multiple of 32 bytes: an element names its place."""
        slices, *pixels, images = self.extents
        shape = (images, slices, *pixels[::-1], self.slice // np.dtype(self.dtype).itemsize)
        size = int(np.prod(shape)) * np.dtype(self.dtype).itemsize
        raw = np.zeros(size + 32, "u1")
        x = raw[-raw.ctypes.data % 32 :][:size].view(self.dtype).reshape(shape)
        x[...] = np.arange(x.size).reshape(shape) % 251 + 1
        return x

    def strides(self) -> list[int]:
        """Return the strides of a map: of a slice, a row, a plane and an image."""
        images, slices, *_ = strides = self.tensor().strides
        return [slices, *strides[2:-2][::-1], images]

    def units(self, moved: bool = True) -> list[tuple[int, ...]]:
        """Return the places of the slices in the order of the copy, each as C/x, W, H, D, N."""
        if not self.corners:
            shape = [-(-size // step) for size, step in zip(self.box, self.steps, strict=False)]
            order = [self.rank - 1, 0, *range(self.rank - 2, 0, -1)]
            found = []
            for index in product(*(range(shape[axis]) for axis in order)):
                place = dict(zip(order, index, strict=True))
                found.append(
                    tuple(self.start[a] + place[a] * self.steps[a] for a in range(self.rank))
                )
            return found
        column = im2col_columns.Column(
            self.dtype, self.extents, *self.corners, (1, self.box[1]), self.start, self.offsets
        )
        channels = [self.start[0] + i for i in range(self.box[0])]
        shift = (self.offsets if moved else ()) or (0,) * (self.rank - 2)
        pixels = [(*np.add(at, shift), image) for *at, image in column.pixels()]
        return [(channel, *pixel) for channel in channels for pixel in pixels]

    def index(self, unit: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the index of a slice in the tensor; None if it is outside."""
        channel, *pixel, image = unit
        inside = all(0 <= at < size for at, size in zip(unit, self.extents, strict=True))
        return (image, channel, *pixel[::-1]) if inside else None

    def expected(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return shared memory after the load, and the other tensor after the store."""
        chunks, after = np.zeros((len(self.units()), self.slice), "u1"), y.copy()
        for chunk, source in zip(chunks, map(self.index, self.units()), strict=True):
            if source is not None:
                chunk[:] = x[source].view("u1")
        for chunk, target in zip(chunks, map(self.index, self.units(moved=False)), strict=True):
            if target is not None:  # a store has no offsets
                after[target] = chunk.view(x.dtype)
        parts = chunks.reshape(-1, 16)
        row = np.arange(len(parts))
        raw = np.zeros_like(parts)
        raw[row ^ row // 8 % (2**self.swizzle)] = parts
        return raw.reshape(-1), after


CASES = {
    "3d": Slices("u2", 16, (4, 10, 3), (2, 5, 2), (1, 3, 1)),
    "4d": Slices("u1", 16, (3, 6, 5, 2), (3, 4, 2, 1), (0, -1, 4, 1), swizzle=3),
    "5d": Slices("f4", 16, (2, 5, 4, 3, 2), (2, 4, 2, 2, 2), (1, 2, -1, 1, 0), swizzle=2),
    "32 bytes": Slices("u2", 32, (3, 9, 5, 2), (2, 4, 3, 2), (1, 6, 1, 0), swizzle=1),
    "steps": Slices("i4", 16, (5, 9, 7), (4, 8, 2), (0, 1, 2), (2, 3, 1)),
    "im2col": Slices("u2", 16, (4, 8, 6, 3), (2, 48), (1, 2, 1, 0), corners=((0, 0), (0, -2))),
    "im2col 32": Slices(
        "f2", 32, (4, 8, 3), (2, 24), (1, 2, 1), swizzle=1, corners=((0,), (-2,)), offsets=(1,)
    ),
}  # fmt: skip


@functools.cache
def ptx(rank: int, tiled: bool) -> str:
    text = im2col_columns.ptx(rank)
    if not tiled:
        return text
    text = text.replace("im2col_no_offs", "tile")
    changed, count = re.subn(r"(global\.)im2col(\.mbarrier.*\]), \{[^}]*\};", r"\1tile\2;", text)
    assert count == 1
    return changed


def encode(function: Any, case: Slices, address: int, **changed: Any) -> tuple[int, Map]:
    """Encode the map of a case; give the code and the map."""
    raw = (ctypes.c_ubyte * (128 + 64))()
    out = Map.from_buffer(raw, -ctypes.addressof(raw) % 64)

    def array(name: str, kind: Any, values: Any) -> Any:
        numbers = [int(value) for value in changed.get(name, values)]
        return (kind * len(numbers))(*numbers)

    corners = [array("", ctypes.c_int, corner) for corner in case.corners]
    box = case.box if case.corners else [array("box", ctypes.c_uint, case.box)]
    return function(
        ctypes.byref(out), KINDS[case.dtype], ctypes.c_uint(changed.get("rank", case.rank)),
        ctypes.c_void_p(address), array("extents", ctypes.c_ulonglong, case.extents),
        array("strides", ctypes.c_ulonglong, case.strides()), *corners, *box,
        array("steps", ctypes.c_uint, case.steps[: case.rank]),
        changed.get("interleave", case.slice // 16), changed.get("swizzle", case.swizzle), 0, 0,
    ), out  # fmt: skip


def name_of(case: Slices) -> str:
    return "cuTensorMapEncodeIm2col" if case.corners else "cuTensorMapEncodeTiled"


def arguments(case: Slices) -> list[Any]:
    c, *at, n = case.start
    at, offsets = [*at, 0, 0][:3], [*case.offsets, 0, 0, 0][:3]
    numbers = (np.int32(value) for value in (case.size, c, *at, n))
    return [*numbers, *(np.int16(value) for value in offsets), np.int32(STORE)]


def emulated(case: Slices, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    raw = np.zeros(case.size, "u1")
    driver = ProgramDriver(Device("sm_90"))
    function = getattr(driver, name_of(case))
    typed = prototype(words_of(function))(driver.find(name_of(case).encode()))
    maps = [encode(typed, case, one.ctypes.data) for one in (x, y)]
    assert [code for code, _ in maps] == [0, 0]
    launch(
        ptx(case.rank, not case.corners), "column", *(bytes(one) for _, one in maps), raw,
        *arguments(case), shared=case.size, memory=(x, y),
        device=Device("sm_90", Options(check_races=True, time_limit=20)),
    )  # fmt: skip
    return raw


@pytest.mark.parametrize("name", CASES)
def test_slices_in_and_out(name: str) -> None:
    case = CASES[name]
    x, y = case.tensor(), case.tensor()
    y[...] = 3
    raw, after = case.expected(x, y)
    np.testing.assert_array_equal(emulated(case, x, y), raw)
    np.testing.assert_array_equal(y, after)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_slices_are_the_gpus(name: str) -> None:
    case = CASES[name]
    x, y = case.tensor(), case.tensor()
    y[...] = 3
    given = y.copy()
    expected = emulated(case, x, y)
    text = ptx(case.rank, not case.corners)
    with testing.use_driver("cuda"), cl.load(cl.Image(text.encode())) as module:
        function = real_function(name_of(case))
        arrays = [cl.to_device(one.reshape(-1)) for one in (x, given)]
        raw = cl.zeros(case.size, "uint8")
        maps = [encode(function, case, one.address) for one in arrays]
        assert [code for code, _ in maps] == [0, 0]
        module["column"].launch(
            *(one for _, one in maps), raw.address, *arguments(case), grid=1, block=32,
            shared_memory=case.size,
        )  # fmt: skip
        np.testing.assert_array_equal(raw.numpy(), expected)
        np.testing.assert_array_equal(arrays[1].numpy().view("u1"), y.reshape(-1).view("u1"))


REFUSED: dict[str, tuple[str, int, dict[str, Any], str]] = {
    "axes": ("3d", 0x1000, {"rank": 2}, "3 to 5 axes .got 2."),
    "layout": ("3d", 0x1000, {"interleave": 3}, "there is no interleaved layout 3"),
    "swizzle": ("32 bytes", 0x1000, {"swizzle": 2}, "slices of 32 bytes need the swizzle of 32"),
    "address": ("32 bytes", 0x1010, {}, "0x1010 is not a multiple of 32"),
    "stride": ("32 bytes", 0x1000, {"strides": (16, 1440, 4320)}, "16 is not a multiple of 32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_driver_refuses(name: str) -> None:
    case, address, changed, words = REFUSED[name]
    driver = ProgramDriver(Device("sm_90"))
    function = driver.c_function(driver.cuTensorMapEncodeTiled)
    typed = prototype(words_of(driver.cuTensorMapEncodeTiled))(function)
    assert encode(typed, CASES[case], address, **changed)[0] == 1
    text = ctypes.c_void_p()
    driver.cuGetErrorString(1, ctypes.pointer(text))
    assert re.search(words, ctypes.string_at(text.value or 0).decode())


@pytest.mark.gpu
@pytest.mark.parametrize("name", REFUSED)
def test_the_gpus_driver_refuses_it_too(name: str) -> None:
    case, address, changed, _ = REFUSED[name]
    with testing.use_driver("cuda"):
        x = cl.zeros(64, "uint8")  # makes a context
        function = real_function("cuTensorMapEncodeTiled")
        assert encode(function, CASES[case], x.address + address % 32, **changed)[0] == 1


def test_the_error_of_a_map_ends_with_the_reason() -> None:
    with testing.use_driver("emulator"):
        x = cl.zeros((4, 8, 8), "float16")
        # The emulator's device has no tensor maps by default.
        with pytest.raises(cl.DriverError, match=r"but the device is sm_80$"):
            cl.arguments.TensorMap.tiled(x, (1, 8, 8), interleave="32B")
