"""suld, sust, sured, suq: bytes of a CUDA array by coordinates, and what is outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_internals import Result
from texture_cases import (
    LAYERED,
    SURFACE,
    Image,
    Sampling,
    coordinates_of,
    linear_resource,
    run,
    texture_of,
)

import culaunch as cl
from culaunch import testing

# The depth and height of an array, and the order of its coordinates after x.
GEOMETRIES = {
    "1d": (0, 0, 0, ()),
    "2d": (0, 5, 0, ("y",)),
    "3d": (3, 5, 0, ("y", "z")),
    "a1d": (4, 0, LAYERED, ("z",)),
    "a2d": (4, 5, LAYERED, ("z", "y")),
}
WIDTH = 6


@pytest.fixture(params=["emulator", pytest.param("cuda", marks=pytest.mark.gpu)])
def driver(request: pytest.FixtureRequest) -> Any:
    """Select each driver in turn."""
    with testing.use_driver(request.param):
        yield request.param


def image_of(geometry: str = "2d", dtype: str = "u4", channels: int = 1) -> Image:
    depth, height, flags, _ = GEOMETRIES[geometry]
    shape = (max(depth, 1), max(height, 1), WIDTH, channels)
    octets = np.random.default_rng(5).integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    texels = np.ascontiguousarray(octets).view(dtype)[..., 0]
    return Image(texels, depth=depth, height=height, flags=flags | SURFACE)


def surface_of(image: Image) -> int:
    return int(image.driver.surface_create(0, image.resource()))


def places_of(geometry: str, image: Image, count: int = 80, beyond: int = 0) -> np.ndarray:
    """Return random columns, rows and slices, each up to `beyond` outside the array."""
    random, (slices, rows, width, _) = np.random.default_rng(3), image.texels.shape
    order = GEOMETRIES[geometry][3]
    places = np.zeros((count, 3), "i4")
    places[:, 0] = random.integers(-beyond, width + beyond, count)
    places[:, 1] = random.integers(-beyond, rows + beyond, count) if "y" in order else 0
    # The number of a layer has no sign.
    least = -beyond if geometry == "3d" else 0
    places[:, 2] = random.integers(least, slices + beyond, count) if "z" in order else 0
    return places


def words_of(geometry: str, places: np.ndarray, size: int) -> np.ndarray:
    """Return the four words of coordinates; the first one on the line counts bytes."""
    order = GEOMETRIES[geometry][3]
    columns = {"x": places[:, 0] * size, "y": places[:, 1], "z": places[:, 2]}
    names = ["z", "x", "y"] if geometry[0] == "a" else ["x", "y", "z"]
    words = np.zeros((len(places), 4), "i4")
    for at, name in enumerate(name for name in names if name == "x" or name in order):
        words[:, at] = columns[name]
    return words


def registers(size: int) -> tuple[str, str, str]:
    """Return the form of a read of some bytes, its registers, and moves to four words."""
    if size < 4:
        move = "cvt.u32.u16 %o0, %h0;"
        return f"b{8 * size}", "%h0", move
    count = size // 4
    vector = f"v{count}." if count > 1 else ""
    names = ", ".join(f"%o{i}" for i in range(count))
    return f"{vector}b32", "{" + names + "}" if count > 1 else names, ""


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize(
    ("dtype", "channels"), [("u1", 1), ("i2", 1), ("f4", 1), ("u2", 4), ("f4", 4)]
)
@pytest.mark.usefixtures("driver")
def test_suld_returns_the_bytes_of_a_texel(geometry: str, dtype: str, channels: int) -> None:
    image = image_of(geometry, dtype, channels)
    size = image.texels.itemsize * channels
    places = places_of(geometry, image)
    form, target, move = registers(size)
    read = f".reg .b16 %h0; suld.b.{geometry}.{form}.trap {target}, [%unit, "
    read += f"{coordinates_of(geometry)}]; {move}"
    count = max(size // 4, 1)
    got = run(read, surface_of(image), words_of(geometry, places, size), count)[:, :count]
    x, y, z = places.T
    octets = np.ascontiguousarray(got).view("u1")[:, :size]
    wanted = np.ascontiguousarray(image.texels[z, y, x]).view("u1").reshape(-1, size)
    np.testing.assert_array_equal(octets, wanted)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("clamp", ["zero", "clamp"])
@pytest.mark.usefixtures("driver")
def test_places_outside_read_zero_or_the_nearest(geometry: str, clamp: str) -> None:
    image = image_of(geometry)
    places = places_of(geometry, image, beyond=3)
    read = f"suld.b.{geometry}.b32.{clamp} %o0, [%unit, {coordinates_of(geometry)}];"
    got = run(read, surface_of(image), words_of(geometry, places, 4), 1)[:, 0]
    slices, rows, width, _ = image.texels.shape
    nearest = np.clip(places, 0, np.array([width, rows, slices]) - 1)
    x, y, z = nearest.T
    wanted = image.texels[z, y, x, 0]
    wanted[(nearest != places).any(axis=1) & (clamp == "zero")] = 0
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("clamp", ["trap", "zero"])
@pytest.mark.usefixtures("driver")
def test_sust_writes_a_texel_and_zero_drops_what_is_outside(geometry: str, clamp: str) -> None:
    image = image_of(geometry)
    places = np.unique(places_of(geometry, image, beyond=2 * (clamp == "zero")), axis=0)
    write = "add.u32 %o0, %i, 1000;"
    write += f"sust.b.{geometry}.b32.{clamp} [%unit, {coordinates_of(geometry)}], %o0;"
    run(write, surface_of(image), words_of(geometry, places, 4), 1)
    wanted = image.texels.copy()
    slices, rows, width, _ = wanted.shape
    for number, (x, y, z) in enumerate(places.tolist()):
        if 0 <= x < width and 0 <= y < rows and 0 <= z < slices:
            wanted[z, y, x] = 1000 + number
    np.testing.assert_array_equal(image.numpy(), wanted)


@pytest.mark.parametrize(
    ("dtype", "values", "stored"),
    [
        ("f4", [1.5, -2.0], [1.5, -2.0]),
        ("f2", [1.5, 65519.0], [1.5, 65504.0]),
        ("u1", [7, 300], [7, 255]),
        ("i2", [-3, 40000], [-3, 32767]),
    ],
)
def test_sust_p_converts_to_the_format(dtype: str, values: list[Any], stored: list[Any]) -> None:
    with testing.use_driver("emulator"):
        image = image_of("2d", dtype, 2)
        words = np.zeros((1, 4), "i4")
        words[0, :2] = 3, 2
        kind = "f4" if dtype[0] == "f" else "i4"
        bits = np.array(values, kind).view("u4").tolist()
        write = f"mov.b32 %o0, {bits[0]}; mov.b32 %o1, {bits[1]};"
        write += "sust.p.2d.v2.b32.trap [%unit, {%c0, %c1}], {%o0, %o1};"
        run(write, surface_of(image), words, 1)
        wanted = image.texels.copy()
        wanted[0, 2, 3] = np.array(stored, dtype)
        np.testing.assert_array_equal(image.numpy(), wanted)


REDUCTIONS = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
              "or": np.bitwise_or}  # fmt: skip


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d"])
@pytest.mark.parametrize(
    ("op", "kind"),
    [
        *(("add", kind) for kind in ("u32", "s32", "u64")), *((op, "b32") for op in ("and", "or")),
        *((op, kind) for op in ("min", "max") for kind in ("u32", "s32", "u64", "s64")),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("driver")
def test_sured_combines_all_values_of_a_place(geometry: str, op: str, kind: str) -> None:
    size = int(kind[1:]) // 8
    image = image_of(geometry, "u4", size // 4)
    places = places_of(geometry, image, beyond=2)
    value = "%o0" if size == 4 else "%v"
    body = "mul.lo.u32 %o0, %i, 0x9E3779B9;"
    body += ".reg .b64 %v; mov.b64 %v, {%i, %o0};" if size == 8 else ""
    body += f"sured.b.{op}.{geometry}.{kind}.zero [%unit, {coordinates_of(geometry)}], {value};"
    run(body, surface_of(image), words_of(geometry, places, size), 1)
    dtype = f"{'i' if kind[0] == 's' else 'u'}{size}"
    wanted = image.texels.copy().view(dtype)[..., 0]
    slices, rows, width, _ = image.texels.shape
    for number, (x, y, z) in enumerate(places.tolist()):
        given = number * 0x9E3779B9 & 0xFFFFFFFF
        given = given << 32 | number if size == 8 else given
        if 0 <= x < width and 0 <= y < rows and 0 <= z < slices:
            one = np.array(given, f"u{size}").view(dtype)
            with np.errstate(over="ignore"):
                wanted[z, y, x] = REDUCTIONS[op](wanted[z, y, x], one)
    np.testing.assert_array_equal(image.numpy().view(dtype)[..., 0], wanted)


@pytest.mark.parametrize(("dtype", "op", "wanted"), [("i4", "min", -5), ("u4", "max", 2**32 - 5)])
@pytest.mark.usefixtures("driver")
def test_sured_p_counts_texels_and_has_the_sign_of_the_format(
    dtype: str, op: str, wanted: int
) -> None:
    texels = np.arange(5 * WIDTH, dtype=dtype).reshape(1, 5, WIDTH, 1)
    image = Image(texels, depth=0, height=5, flags=SURFACE)
    words = np.array([(3, 2, 0, 0)], "i4")
    body = f"mov.b32 %o0, -5; sured.p.{op}.2d.b32.trap [%unit, {{%c0, %c1}}], %o0;"
    run(body, surface_of(image), words, 1)
    expected = texels.copy()
    expected[0, 2, 3] = wanted
    np.testing.assert_array_equal(image.numpy(), expected)


@pytest.mark.usefixtures("driver")
def test_suq_tells_the_size() -> None:
    read = "suq.width.b32 %o0, [%unit]; suq.height.b32 %o1, [%unit];"
    got = run(read, surface_of(image_of()), np.zeros((2, 4), "i4"), 2)
    assert got[:, :2].tolist() == [[WIDTH, 5]] * 2


# ---- what a thread may not do

READ = "suld.b.2d.b32.trap %o0, [%unit, {%c0, %c1}];"
WRITE = "sust.b.2d.b32.trap [%unit, {%c0, %c1}], %o0;"
REDUCE = "sured.b.min.2d.u32.trap [%unit, {%c0, %c1}], %o0;"
SAMPLE = "tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%unit, {%c0, %c1}];"


def fault_of(read: str, unit: int, words: Any = ((0, 0, 0, 0),)) -> cl.DriverError:
    with pytest.raises(cl.DriverError) as caught:
        run(read, unit, np.array(words, "i4"))
    testing.reset_emulator()
    return caught.value


@pytest.mark.parametrize(("read", "size"), [(READ, 4), (WRITE, 4), (REDUCE, 4)])
@pytest.mark.parametrize("place", [(24, 0), (-4, 0), (0, 5), (0, -1)])
def test_outside_a_surface_traps(read: str, size: int, place: tuple[int, int]) -> None:
    with testing.use_driver("emulator"):
        error = fault_of(read, surface_of(image_of()), [(0, 0, 0, 0), (*place, 0, 0)])
    assert error.code == Result.LAUNCH_FAILED
    assert f"{size}-byte access to a surface at byte {place[0]}, row {place[1]}" in str(error)
    assert "outside its 24 bytes, 5 rows and 1 slices" in str(error)
    assert "thread (1, 0, 0)" in str(error)
    assert read.split(",", maxsplit=1)[0] in str(error)


def test_a_place_that_is_not_a_multiple_of_the_access() -> None:
    with testing.use_driver("emulator"):
        error = fault_of(READ, surface_of(image_of()), [(6, 0, 0, 0)])
    assert error.code == Result.MISALIGNED_ADDRESS
    assert "at byte 6 of a row, which is not a multiple of 4" in str(error)


@pytest.mark.parametrize("read", [READ, WRITE, SAMPLE])
def test_a_number_that_is_no_handle(read: str) -> None:
    noun = "texture" if read == SAMPLE else "surface"
    with testing.use_driver("emulator"):
        assert f"0x7 is not a {noun} object: pass the handle" in str(fault_of(read, 7))
        image = image_of()
        other = texture_of(image.resource(), Sampling()) if read != SAMPLE else surface_of(image)
        wanted = f"{other:#x} is a {'surface' if read == SAMPLE else 'texture'} object, but"
        assert wanted in str(fault_of(read, other))


def test_a_destroyed_object_and_a_destroyed_array() -> None:
    with testing.use_driver("emulator"):
        image = image_of()
        driver = image.driver
        surface, texture = surface_of(image), texture_of(image.resource(), Sampling())
        gone = texture_of(image.resource(), Sampling())
        driver.texture_destroy(0, gone)
        assert f"the texture object {gone:#x} is destroyed" in str(fault_of(SAMPLE, gone))
        driver.array_destroy(0, image.handle)
        for read, unit in ((READ, surface), (SAMPLE, texture)):
            error = fault_of(read, unit)
            assert error.code == Result.ILLEGAL_ADDRESS
            assert "the CUDA array of the" in str(error)


def test_a_texture_of_freed_memory() -> None:
    with testing.use_driver("emulator"):
        line = np.zeros((1, 1, 40, 1), "f4")
        memory = cl.to_device(line)
        unit = texture_of(linear_resource(memory, line), Sampling())
        del memory
        read = "tex.1d.v4.f32.s32 {%o0, %o1, %o2, %o3}, [%unit, {%c0}];"
        assert "outside every allocation" in str(fault_of(read, unit))


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        ("tex.2d.v4.f32.f32 {%o0, %o1, %o2, %o3}, [%unit, %unit, {%c0, %c1}];", "separate sampler"),
        ("tex.2dms.v4.f32.s32 {%o0, %o1, %o2, %o3}, [%unit, {%c0, %c1}];", "the geometry"),
        ("suld.p.2d.b32.trap %o0, [%unit, {%c0, %c1}];", "suld.p.2d.b32.trap"),
        ("txq.channel_order.b32 %o0, [%unit];", "this query"),
    ],
)
def test_a_form_that_is_not_emulated(read: str, reason: str) -> None:
    with testing.use_driver("emulator"):
        error = fault_of(read, 16)
    assert error.code == Result.NOT_SUPPORTED
    assert reason in str(error)
