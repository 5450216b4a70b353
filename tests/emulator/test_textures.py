"""tex, tld4, txq: every geometry, format, filter and address mode, against plain Python.

On a GPU, the same reads are compared with the hardware's.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from texture_cases import (
    AXES,
    BORDER,
    CLAMP,
    CUBEMAP,
    FORMATS,
    GATHER,
    LAYERED,
    MIRROR,
    SURFACE,
    WRAP,
    Image,
    Sampling,
    coordinates_of,
    linear_resource,
    run,
    sample,
    texel,
    texture_of,
)

import culaunch as cl
from culaunch import testing

SIZES = {
    "1d": (0, 0, 13), "2d": (0, 5, 7), "3d": (3, 4, 6), "a1d": (4, 0, 9), "a2d": (3, 5, 6),
    "cube": (6, 4, 4), "acube": (12, 4, 4),
}  # fmt: skip
FLAGS = {"a1d": LAYERED, "a2d": LAYERED, "cube": CUBEMAP, "acube": CUBEMAP | LAYERED}


class Case(NamedTuple):
    """A texture, and how a kernel reads it."""

    geometry: str
    format: str
    channels: int
    sampling: Sampling
    seed: int = 0

    def __str__(self) -> str:
        words = [name for name, value in self.sampling._asdict().items() if value is True]
        mode = ["wrap", "clamp", "mirror", "border"][self.sampling.mode]
        return "-".join((self.geometry, f"{self.format}x{self.channels}", mode, *words))

    @property
    def reads_integers(self) -> bool:
        is_float = self.format[0] == "f" or not (self.format[1] == "4" or self.sampling.as_integer)
        return not is_float

    def texels(self) -> np.ndarray:
        random, dtype = np.random.default_rng(self.seed), np.dtype(self.format)
        depth, height, width = SIZES[self.geometry]
        shape = (max(depth, 1), max(height, 1), width, self.channels)
        if dtype.kind == "f":
            return random.uniform(-4, 4, shape).astype(dtype)
        limits = np.iinfo(dtype)
        return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def places(self) -> np.ndarray:
        """Return four words for each read; no place is between two texels of a point filter."""
        random, axes = np.random.default_rng(self.seed + 1), AXES[self.geometry]
        depth, height, width = SIZES[self.geometry]
        sizes = (width, max(height, 1), max(depth, 1))[:axes]
        words = np.zeros((300, 4), "f4")
        first = int(self.geometry[0] == "a")
        if "cube" in self.geometry:
            words[:, first : first + 3] = directions(random, len(words))
        else:
            for axis, size in enumerate(sizes):
                # Multiples of 1/64 that are no whole numbers: exact in the hardware's numbers.
                eighths = random.integers(-2 * size * 8, 3 * size * 8, len(words)) / 8 + 1 / 64
                is_normalized = self.sampling.normalized
                words[:, first + axis] = eighths / size if is_normalized else eighths
        if first:
            layers = depth if "cube" not in self.geometry else depth // 6
            words.view("u4")[:, 0] = random.integers(0, layers, len(words))
        return words

    def read(self) -> np.ndarray:
        """Return the words that a kernel reads on the driver in use."""
        depth, height, _ = SIZES[self.geometry]
        flags = FLAGS.get(self.geometry, 0)
        image = Image(self.texels(), depth=depth, height=height, flags=flags)
        unit = texture_of(image.resource(), self.sampling)
        kind = "u32" if self.reads_integers else "f32"
        where = f"[%unit, {coordinates_of(self.geometry)}]"
        read = f"tex.{self.geometry}.v4.{kind}.f32 {{%o0, %o1, %o2, %o3}}, {where};"
        return run(read, unit, self.places())

    def expected(self) -> np.ndarray:
        texels, places, axes = self.texels(), self.places(), AXES[self.geometry]
        first = int(self.geometry[0] == "a")
        layers = places.view("u4")[:, 0] if first else np.zeros(len(places), int)
        rows = []
        for place, layer in zip(places[:, first : first + axes].tolist(), layers, strict=True):
            sampling = self.sampling
            if "cube" in self.geometry:
                face, s, t = on_face(*place)
                sampling = sampling._replace(normalized=True, mode=CLAMP)
                rows.append(sample(texels, [s, t], 6 * layer + face, sampling))
            else:
                rows.append(sample(texels, place, layer, sampling))
        return np.array(rows, "i8").astype("u4") if self.reads_integers else np.array(rows)


def directions(random: np.random.Generator, count: int) -> np.ndarray:
    """Return directions whose places on a face are multiples of 1/64 of a texel of four."""
    out = np.empty((count, 3), "f4")
    for row in out:
        major = random.integers(3)
        row[:] = random.integers(-120, 120, 3) / 128 + 1 / 256
        row[major] = random.choice((-1.0, 1.0))
    return out


def on_face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """Return the face of a direction, by the table of the guide ("Cubemap Textures")."""
    if abs(x) > abs(y) and abs(x) > abs(z):
        face, m, s, t = (0, x, -z, -y) if x >= 0 else (1, -x, z, -y)
    elif abs(y) > abs(z):
        face, m, s, t = (2, y, x, z) if y >= 0 else (3, -y, x, -z)
    else:
        face, m, s, t = (4, z, x, -y) if z >= 0 else (5, -z, -x, -y)
    return face, (s / m + 1) / 2, (t / m + 1) / 2


def cases() -> list[Case]:
    points = [Case("2d", name, 4, Sampling(as_integer=True)) for name in FORMATS]
    points += [Case("2d", name, 2, Sampling(BORDER)) for name in ("u1", "u2", "i1", "i2", "f2")]
    points += [Case("2d", "f4", 1, Sampling(mode)) for mode in (WRAP, MIRROR)]  # both clamp
    every = [
        Case(geometry, "f4", channels, Sampling(mode, linear=linear, normalized=True))
        for geometry, channels, mode, linear in itertools.product(
            ("1d", "2d", "3d", "a1d", "a2d"), (1, 4), range(4), (False, True)
        )
    ]
    cubes = [
        Case(geometry, name, 4, Sampling(linear=linear, normalized=True))
        for geometry, name, linear in itertools.product(
            ("cube", "acube"), ("f4", "u1"), (False, True)
        )
    ]
    filtered = [
        Case("2d", name, 4, Sampling(mode, linear=True))
        for name, mode in itertools.product(("u1", "u2", "i1", "i2", "f2", "f4"), (CLAMP, BORDER))
    ]
    border = Sampling(BORDER, linear=True, border=(0.5, -1.0, 2.0, 4.0))
    more = [Case("2d", "f4", 4, border), Case("2d", "u1", 4, Sampling(srgb=True))]
    return [*points, *every, *cubes, *filtered, *more]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_read(case: Case) -> None:
    with testing.use_driver("emulator"):
        got = case.read()
    assert_close(case, got, case.expected(), 1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("case", cases(), ids=str)
def test_a_read_is_the_gpus(case: Case) -> None:
    with testing.use_driver("emulator"):
        emulated = case.read()
    with testing.use_driver("cuda"):
        real = case.read()
    # Only the channels that the array has: the others are another test's.
    emulated, real = (words[:, : case.channels] for words in (emulated, real))
    if case.sampling.linear or case.sampling.srgb:
        assert_close(case, emulated, real.view("f4"), 1 / 256)
    else:
        np.testing.assert_array_equal(emulated, real)


def assert_close(case: Case, words: np.ndarray, wanted: np.ndarray, step: float) -> None:
    """Compare: integers exactly, floats within a part of the largest step, for each axis."""
    if case.reads_integers:
        np.testing.assert_array_equal(words, wanted)
        return
    texels = case.texels()
    is_float = texels.dtype.kind == "f"
    largest = 2 * float(np.abs(texels).max()) if is_float else 1 + (texels.dtype.kind == "i")
    largest = max(largest, *case.sampling.border)
    largest *= AXES[case.geometry]
    np.testing.assert_allclose(words.view("f4"), wanted, rtol=0, atol=step * largest)


# ---- other forms


@pytest.fixture(params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def driver(request: pytest.FixtureRequest) -> Any:
    """Select each driver in turn."""
    with testing.use_driver(request.param):
        yield request.param


TEXELS = np.random.default_rng(7).uniform(-4, 4, (1, 5, 7, 4)).astype("f4")
V4 = "{%o0, %o1, %o2, %o3}"


def image_2d(texels: np.ndarray = TEXELS, flags: int = 0) -> Image:
    return Image(texels, depth=0, height=texels.shape[1], flags=flags)


@pytest.mark.usefixtures("driver")
def test_integer_coordinates_name_texels_and_are_zero_outside() -> None:
    unit = texture_of(image_2d().resource(), Sampling(CLAMP))
    words = np.array([[x, y, 0, 0] for x in range(-2, 9) for y in range(-2, 7)], "i4")
    got = run(f"tex.2d.v4.f32.s32 {V4}, [%unit, {{%c0, %c1}}];", unit, words).view("f4")
    for (x, y, *_), row in zip(words.tolist(), got, strict=True):
        inside = 0 <= x < 7 and 0 <= y < 5
        assert row.tolist() == (TEXELS[0, y, x].tolist() if inside else [0, 0, 0, 0])


@pytest.mark.parametrize("name", ["f4", "u1", "i2"])
@pytest.mark.usefixtures("driver")
def test_a_line_in_global_memory(name: str) -> None:
    line = np.random.default_rng(3).integers(0, 100, (1, 1, 40, 2)).astype(name)
    memory = cl.to_device(line)
    unit = texture_of(linear_resource(memory, line), Sampling(as_integer=True))
    words = np.zeros((50, 4), "i4")
    words[:, 0] = np.arange(-5, 45)
    kind = "f32" if name == "f4" else "s32"
    got = run(f"tex.1d.v4.{kind}.s32 {V4}, [%unit, {{%c0}}];", unit, words)
    wanted = np.zeros((50, 2), name)
    wanted[5:45] = line[0, 0]
    values = got.view("f4" if name == "f4" else "i4")[:, :2]
    np.testing.assert_array_equal(values, wanted)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.usefixtures("driver")
def test_rows_with_a_pitch(linear: bool) -> None:
    rows = np.zeros((5, 32), "f4")  # 7 texels in a row of 128 bytes
    rows[:, :7] = TEXELS[0, :, :, 0]
    memory, texels = cl.to_device(rows), np.ascontiguousarray(TEXELS[..., :1])
    sampling = Sampling(CLAMP, linear=linear)
    unit = texture_of(linear_resource(memory, texels, 128), sampling)
    words = np.zeros((200, 4), "f4")
    words[:, :2] = np.random.default_rng(5).integers(-8, 72, (200, 2)) / 8 + 1 / 64
    got = run(f"tex.2d.v4.f32.f32 {V4}, [%unit, {{%c0, %c1}}];", unit, words).view("f4")
    wanted = [sample(texels, row[:2], 0, sampling)[0] for row in words.tolist()]
    np.testing.assert_allclose(got[:, 0], wanted, rtol=0, atol=8 / 256 if linear else 0)


@pytest.mark.parametrize("component", "rgba")
@pytest.mark.usefixtures("driver")
def test_tld4_gathers_one_channel_of_four_texels(component: str) -> None:
    sampling = Sampling(MIRROR, normalized=True)
    unit = texture_of(image_2d(flags=GATHER).resource(), sampling)
    words = np.zeros((200, 4), "f4")
    points = np.random.default_rng(9).integers(-40, 80, (200, 2)) / 8 + 1 / 64
    words[:, :2] = points / (7, 5)
    read = f"tld4.{component}.2d.v4.f32.f32 {V4}, [%unit, {{%c0, %c1}}];"
    got = run(read, unit, words).view("f4")
    for (x, y), row in zip(np.floor(points - 0.5).astype(int).tolist(), got, strict=True):
        corners = [(x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y)]
        channel = "rgba".index(component)
        assert row.tolist() == [texel(TEXELS, [*at], 0, sampling)[channel] for at in corners]


@pytest.mark.usefixtures("driver")
def test_halves_offsets_levels_and_gradients_of_an_image_without_mipmap() -> None:
    texels = TEXELS.astype("f2")
    unit = texture_of(image_2d(texels).resource(), Sampling(BORDER))
    words = np.zeros((35, 4), "f4")
    words[:, :2] = [(x + 0.5, y + 0.5) for y in range(5) for x in range(7)]
    where = "[%unit, {%c0, %c1}]"
    got = run(f"tex.2d.v2.f16x2.f32 {{%o0, %o1}}, {where};", unit, words, 2)
    np.testing.assert_array_equal(got[:, :2].copy().view("f2"), texels.reshape(35, 4))
    one = ".reg .b16 %h<4>; tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%unit, {%c0, %c1}];"
    got = run(f"{one} mov.b32 %o0, {{%h1, %h2}};", unit, words, 1)
    np.testing.assert_array_equal(got[:, :1].copy().view("f2"), texels.reshape(35, 4)[:, 1:3])
    shifted = np.zeros_like(texels)
    shifted[0, :-1, 2:] = texels[0, 1:, :-2]
    got = run(f"tex.2d.v4.f32.f32 {V4}, {where}, {{-2, 1}};", unit, words).view("f4")
    np.testing.assert_array_equal(got, shifted.reshape(35, 4))
    for read in (
        f"tex.level.2d.v4.f32.f32 {V4}, {where}, 0f40000000;",
        f"tex.grad.2d.v4.f32.f32 {V4}, {where}, {{%c0, %c1}}, {{%c1, %c0}};",
        f"tex.base.2d.v4.f32.f32 {V4}, {where};",
    ):
        np.testing.assert_array_equal(run(read, unit, words).view("f4"), texels.reshape(35, 4))


@pytest.mark.usefixtures("driver")
def test_the_channels_that_an_array_lacks() -> None:
    unit = texture_of(image_2d(TEXELS[..., :2].copy()).resource(), Sampling())
    got = run(f"tex.2d.v4.f32.f32 {V4}, [%unit, {{%c0, %c1}}];", unit, np.zeros((1, 4), "f4"))
    assert got.view("f4")[0].tolist() == [*TEXELS[0, 0, 0, :2], 0, 0]
    numbers = np.array([[[[7]]]], "i4")
    unit = texture_of(image_2d(numbers).resource(), Sampling(as_integer=True))
    got = run(f"tex.2d.v4.s32.f32 {V4}, [%unit, {{%c0, %c1}}];", unit, np.zeros((1, 4), "f4"))
    assert got[0].tolist() == [7, 0, 0, 0]


@pytest.mark.usefixtures("driver")
def test_txq_tells_the_size() -> None:
    image = image_2d(flags=SURFACE)
    unit = texture_of(image.resource(), Sampling(normalized=True))
    read = "txq.width.b32 %o0, [%unit]; txq.height.b32 %o1, [%unit];"
    got = run(read, unit, np.zeros((3, 4), "f4"), 2)
    assert got[:, :2].tolist() == [[7, 5]] * 3


def test_istypep_knows_textures() -> None:
    with testing.use_driver("emulator"):
        unit = texture_of(image_2d().resource(), Sampling())
        read = "istypep.texref %q, %unit; selp.u32 %o0, 3, 4, %q; istypep.surfref %q, %unit;"
        got = run(f"{read} selp.u32 %o1, 3, 4, %q;", unit, np.zeros((1, 4), "f4"), 2)
    assert got[0, :2].tolist() == [3, 4]


def test_threads_read_textures_of_their_own() -> None:
    with testing.use_driver("emulator"):
        images = [image_2d(TEXELS + i) for i in range(3)]
        units = np.array([texture_of(one.resource(), Sampling()) for one in images], "u8")
        table = cl.to_device(np.tile(units, 20))
        read = (
            f"mul.wide.u32 %d, %i, 8; add.u64 %d, %d, %unit; ld.global.u64 %unit, [%d];"
            f"setp.ne.u32 %q, %i, 5; mov.u32 %o0, 7; mov.u32 %o3, 7;"
            f"@%q tex.2d.v4.f32.f32 {V4}, [%unit, {{%c0, %c1}}];"
        )
        got = run(read, table.address, np.full((60, 4), 2.5, "f4")).view("f4")
    for i in set(range(60)) - {5}:
        assert got[i].tolist() == (TEXELS + i % 3)[0, 2, 2].tolist()
    assert got[5].view("u4")[[0, 3]].tolist() == [7, 7]


@pytest.mark.parametrize("linear", [False, True])
def test_a_predicate_says_that_a_texel_was_read(linear: bool) -> None:
    with testing.use_driver("emulator"):
        unit = texture_of(image_2d().resource(), Sampling(linear=linear))
        read = f"tex.2d.v4.f32.f32 {V4}|%q, [%unit, {{%c0, %c1}}]; selp.u32 %o1, 3, 4, %q;"
        got = run(read, unit, np.full((1, 4), 0.5, "f4"))
    assert got[0, 1] == 3
    assert got.view("f4")[0, 2] == TEXELS[0, 0, 0, 2]


def test_a_float_keeps_its_bits_and_weightless_texels_are_not_read() -> None:
    bits = np.array([1, 0x7F800001, 0xFFC12345, 0x80000000], "u4").reshape(1, 1, 4, 1)
    words = np.zeros((4, 4), "f4")
    words[:, 0] = np.arange(4) + 0.5
    read = f"tex.1d.v4.f32.f32 {V4}, [%unit, {{%c0}}];"
    with testing.use_driver("emulator"):
        image = Image(bits.view("f4"), depth=0, height=0)
        got = run(read, texture_of(image.resource(), Sampling()), words)
        linear = run(read, texture_of(image.resource(), Sampling(linear=True)), words)
    assert got[:, 0].tolist() == bits.reshape(-1).tolist()
    assert linear[0, 0] == 1
    assert np.isnan(linear.view("f4")[1:3, 0]).all()


def test_weights_are_rounded_to_256ths(driver: str) -> None:
    line = np.array([0, 256], "f4").reshape(1, 1, 2, 1)
    parts = np.arange(4097) / 4096
    words = np.zeros((4097, 4), "f4")
    words[:, 0] = 0.5 + parts
    unit = texture_of(Image(line, depth=0, height=0).resource(), Sampling(linear=True))
    got = run(f"tex.1d.v4.f32.f32 {V4}, [%unit, {{%c0}}];", unit, words).view("f4")[:, 0]
    wanted = np.floor(parts * 256 + 0.5)
    assert np.abs(got - wanted).max() <= (0 if driver == "emulator" else 1)


@pytest.mark.usefixtures("driver")
def test_the_last_layer_stands_for_those_after_it() -> None:
    layers = np.arange(12, dtype="f4").reshape(3, 1, 4, 1)
    image = Image(layers, depth=3, height=0, flags=LAYERED)
    words = np.zeros((3, 4), "u4")
    words[:, 0] = 2, 3, 900
    words[:, 1] = np.float32(1.5).view("u4")
    unit = texture_of(image.resource(), Sampling())
    got = run(f"tex.a1d.v4.f32.f32 {V4}, [%unit, {{%c0, %c1}}];", unit, words).view("f4")
    assert got[:, 0].tolist() == [9, 9, 9]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_coordinates_without_a_place(value: float) -> None:
    words = np.full((1, 4), value, "f4")
    with testing.use_driver("emulator"):
        for mode in range(4):
            sampling = Sampling(mode, linear=True, normalized=True)
            unit = texture_of(image_2d().resource(), sampling)
            got = run(f"tex.2d.v4.f32.f32 {V4}, [%unit, {{%c0, %c1}}];", unit, words)
            assert (np.abs(got.view("f4")) <= 4).all()
