"""Names and signatures in a file: any of them, and no damage goes unnoticed or does harm."""

import contextlib
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import culaunch as cl

PTX = b".version 8.0\n.target sm_80\n.address_size 64\n"
CUBIN = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(9) + b"\xbe\x00" + bytes(100)
FATBIN = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 0)
IMAGES = [PTX, CUBIN, FATBIN]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SIGNATURES = st.dictionaries(TEXT, st.lists(st.none() | TEXT, max_size=5).map(tuple), max_size=5)


def names_of(data):
    """Open a file; give its names, or nothing if it is refused."""
    with contextlib.suppress(cl.ImageError):
        return cl.Image.open(data).names
    return {}


def saved(image, path):
    image.save(path)
    return path.read_bytes()


@pytest.mark.slow
@given(
    data=st.sampled_from(IMAGES),
    names=st.dictionaries(TEXT, TEXT, max_size=5),
    signatures=SIGNATURES,
)
def test_any_names_come_back(tmp_path_factory, data, names, signatures):
    path = tmp_path_factory.mktemp("saved") / "image"
    image = cl.Image(data, names=names, signatures=signatures)
    found = cl.Image.open(saved(image, path))
    assert found.data == data
    assert found.names == names
    assert found.signatures == signatures


@pytest.mark.parametrize("data", IMAGES)
@pytest.mark.parametrize("count", [1, 800, 4000])
def test_more_names_than_one_container_holds(tmp_path, data, count):
    names = {f"scale<{number}>": f"_Z5scaleILi{number}EEvv" * 3 for number in range(count)}
    found = cl.Image.open(saved(cl.Image(data, names=names), tmp_path / "image"))
    assert (found.data, found.names) == (data, names)


@pytest.mark.parametrize("data", [CUBIN, FATBIN])
def test_every_bit_flip_in_the_block_is_an_error_or_leaves_no_names(tmp_path, data):
    image = cl.Image(data, names={"a<int>": "_Z1aIiEvv"}, signatures={"k": ("int", None)})
    whole = saved(image, tmp_path / "image")
    for bit in range(len(data) * 8, len(whole) * 8):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        # A flip in the mark itself: a file without names, then, and none that are wrong.
        assert names_of(flipped) == {}


@pytest.mark.parametrize("data", IMAGES)
def test_every_truncation_is_an_error_or_leaves_no_names(tmp_path, data):
    whole = saved(cl.Image(data, names={"a<int>": "_Z1aIiEvv"}), tmp_path / "image")
    for size in range(len(data), len(whole)):
        assert names_of(whole[:size]) == {}


@given(data=st.sampled_from(IMAGES), junk=st.binary(max_size=60), size=st.integers(0, 2**32 - 1))
def test_hostile_trailers_do_no_harm(data, junk, size):
    for checksum in (zlib.crc32(junk), 0):
        tail = struct.pack("<II8s", size, checksum, b"culaunch")
        names_of(data + junk + tail)


@pytest.mark.parametrize(
    "text",
    [b"[]", b"1", b'{"names": 1}', b'{"names": {"a": 1}}', b'{"signatures": {"a": [1]}}', b"\xff"],
)
def test_json_of_another_shape_is_an_error(text):
    tail = struct.pack("<II8s", len(text), zlib.crc32(text), b"culaunch")
    with pytest.raises(cl.ImageError, match="metadata is damaged"):
        cl.Image.open(CUBIN + text + tail)
    if b"\xff" not in text and text.endswith(b"}"):
        with pytest.raises(cl.ImageError, match="metadata is damaged"):
            cl.Image.open(PTX + b"\n// culaunch: " + text + b"\n")


def test_unknown_members_are_ignored():
    text = b'{"names": {"a": "b"}, "later": [1, 2]}'
    tail = struct.pack("<II8s", len(text), zlib.crc32(text), b"culaunch")
    assert cl.Image.open(CUBIN + text + tail).names == {"a": "b"}


@pytest.mark.slow
@pytest.mark.needs("cuobjdump", "nvdisasm")
@pytest.mark.parametrize("count", [1, 3000])
def test_nvidias_tools_take_the_file(tmp_path, scale, count):
    import shutil
    import subprocess
    from pathlib import Path

    import nvidia

    places = [str(p) for root in nvidia.__path__ for p in Path(root).glob("cu*/bin")]

    def tool(name, *arguments):
        # pip's first: the cuobjdump of CUDA 13.0 refuses a fatbin with this container.
        program = shutil.which(name, path=":".join(places)) or shutil.which(name)
        result = subprocess.run([program, *arguments], check=False, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    more = {f"n{number}": "x" * 60 for number in range(count)}
    for arch in ("sm_80", ["sm_80", "sm_90a", "compute_90"]):
        image = cl.compile(scale, arch=arch, names=["scale<float>"])
        image = cl.Image(image.data, names={**image.names, **more})
        path = tmp_path / f"kernel.{image.format}"
        image.save(path)
        assert "sm_80" in tool("cuobjdump", "-lelf", str(path))
        assert "_Z5scaleIfEvPT_PKS0_S0_i" in tool("cuobjdump", "-res-usage", str(path))
        if image.format == "cubin":
            assert "_Z5scaleIfEvPT_PKS0_S0_i" in tool("nvdisasm", str(path))
