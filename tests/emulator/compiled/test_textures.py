"""Reads of textures in compiled code return the words of the NumPy engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from emulator_internals import CompiledKernel

sys.path.insert(0, str(Path(__file__).parents[1]))

from test_textures import Case, cases
from texture_cases import BORDER, CLAMP, Image, Sampling, kernel_of, linear_resource, texture_of

import culaunch as cl
from culaunch import testing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.needs("gcc")

PLAIN = [case for case in cases() if case.geometry in ("1d", "2d", "3d")]


@pytest.fixture(autouse=True)
def emulated() -> Iterator[None]:
    with testing.use_driver("emulator"):
        yield


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Return a function that runs a read on both engines, and compares the words."""
    ran: list[bool] = []
    run = CompiledKernel.run

    def watched(self: CompiledKernel, *args: Any, **keywords: Any) -> bool:
        ran.append(run(self, *args, **keywords))
        return ran[-1]

    monkeypatch.setattr(CompiledKernel, "run", watched)

    def both(read: Callable[[], Any], *, is_compiled: bool = True) -> Any:
        words = []
        for engine in ("numpy", "compiled"):
            monkeypatch.setenv("CULAUNCH_EMULATOR_ENGINE", engine)
            words.append(read())
        assert ran == [is_compiled]
        np.testing.assert_array_equal(words[1], words[0])
        return words[1]

    return both


@pytest.mark.parametrize("case", PLAIN, ids=str)
def test_a_read(case: Case, both: Any) -> None:
    words = both(case.read)
    assert len(np.unique(words)) > 2


def launched(text: str, unit: int, words: np.ndarray, out: Any) -> np.ndarray:
    with cl.load(cl.Image(text.encode())) as module:
        at = cl.to_device(words)
        module["k"].launch(out.address, at.address, unit, len(words), grid=1, block=len(words))
    return out.numpy()


@pytest.mark.parametrize("mode", [CLAMP, BORDER])
@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38, -0.0, 1e-40])
def test_coordinates_without_a_place(value: float, filtered: bool, mode: int, both: Any) -> None:
    random = np.random.default_rng(0)
    image = Image(random.uniform(-4, 4, (1, 5, 7, 2)).astype("f4"), depth=0, height=5)
    words = np.zeros((4, 4), "f4")
    words[:, :2] = [(value, 2.25), (2.25, value), (value, value), (1.5, 1.75)]
    unit = texture_of(image.resource(), Sampling(mode, linear=filtered, border=(5.0,) * 4))
    text = kernel_of("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%unit, {%c0, %c1}];")
    both(lambda: launched(text, unit, words.view("u4"), cl.zeros((4, 4), "uint32")))


def test_integers_that_name_texels(both: Any) -> None:
    texels = np.arange(35, dtype="i2").reshape(1, 5, 7, 1) - 9
    unit = texture_of(Image(texels, depth=0, height=5).resource(), Sampling(as_integer=True))
    words = np.array([(x, y, 0, 0) for x in range(-2, 9) for y in range(-1, 6)], "i4").view("u4")
    text = kernel_of("tex.2d.v4.s32.s32 {%o0, %o1, %o2, %o3}, [%unit, {%c0, %c1}];")
    found = both(lambda: launched(text, unit, words, cl.zeros((len(words), 4), "uint32")))
    expected = [
        texels[0, y, x, 0] if 0 <= x < 7 and 0 <= y < 5 else 0 for x, y in words.view("i4")[:, :2]
    ]
    np.testing.assert_array_equal(found.view("i4")[:, 0], expected)


@pytest.mark.parametrize("kind", ["f4", "u1"])
@pytest.mark.parametrize("filtered", [False, True])
def test_rows_with_a_pitch(kind: str, filtered: bool, both: Any) -> None:
    random = np.random.default_rng(3)
    rows = random.integers(0, 120, (4, 128), "u1")
    texels = rows.view(kind)[:, :8].reshape(1, 4, 8, 1)
    memory = cl.to_device(rows)
    sampling = Sampling(BORDER, linear=filtered, border=(1.0, 2.0, 3.0, 4.0))
    unit = texture_of(linear_resource(memory, texels, pitch=128), sampling)
    words = random.uniform(-2, 10, (64, 4)).astype("f4").view("u4")
    text = kernel_of("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%unit, {%c0, %c1}];")
    both(lambda: launched(text, unit, words, cl.zeros((64, 4), "uint32")))


READ = "tex.1d.v4.u32.s32 {%o0, %o1, %o2, %o3}, [%unit, {%c0}];"


def test_a_launch_that_writes_the_image_is_left_to_numpy(both: Any) -> None:
    """There, a read sees what the launch has written."""
    words = np.zeros((32, 4), "u4")
    words[:, 0] = np.arange(32) * 16

    def read() -> np.ndarray:
        memory = cl.zeros((32, 4), "uint32")
        resource = linear_resource(memory, np.zeros((1, 1, 512, 1), "u1"))
        unit = texture_of(resource, Sampling(as_integer=True))
        return launched(kernel_of("st.global.u8 [%to], 7; " + READ), unit, words, memory)

    found = both(read, is_compiled=False)
    np.testing.assert_array_equal(found[:, 0], 7)


def test_a_handle_from_memory_is_left_to_numpy(both: Any) -> None:
    texels = np.arange(16, dtype="u1").reshape(1, 1, 16, 1)
    unit = texture_of(Image(texels, depth=0, height=0).resource(), Sampling(as_integer=True))
    words = np.zeros((16, 4), "u4")
    words[:, 0], words[:, 2] = np.arange(16), unit
    text = kernel_of("mov.b64 %unit, {%c2, %c3}; " + READ)
    found = both(lambda: launched(text, 0, words, cl.zeros((16, 4), "uint32")), is_compiled=False)
    np.testing.assert_array_equal(found[:, 0], np.arange(16))
