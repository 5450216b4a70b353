"""Fatbins: entries of every kind, compressed in every way."""

import dataclasses
import re
import struct

import pytest

import culaunch as cl
from culaunch._image import embedded_ptx

LTOIR = b"\xedCN\x7f" + bytes(60)


def entry(payload, kind=2, sm=90, flags=0x11, compressed=0, unpacked=0, header=64):
    padded = payload + bytes(-len(payload) % 8)
    fields = (kind, 0x101, header, len(padded), compressed, 0, 0, 0, sm, 0, 0, flags, 0, unpacked)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + bytes(header - 64) + padded


def container(*entries, version=1, header=16, size=None):
    body = b"".join(entries)
    size = len(body) if size is None else size
    return struct.pack("<IHHQ", 0xBA55ED50, version, header, size) + bytes(header - 16) + body


MODES = {
    (): {"sm_80": False, "sm_90a": False, "sm_100f": False, "compute_90": True},
    ("-compress=false",): dict.fromkeys(("sm_80", "sm_90a", "sm_100f", "compute_90"), False),
    ("-compress-all",): dict.fromkeys(("sm_80", "sm_90a", "sm_100f", "compute_90"), True),
    ("-compress-all", "-compress-mode=size"): dict.fromkeys(
        ("sm_80", "sm_90a", "sm_100f", "compute_90"), True
    ),
    ("-compress-all", "-compress-mode=speed"): dict.fromkeys(
        ("sm_80", "sm_90a", "sm_100f", "compute_90"), True
    ),
}


@pytest.mark.parametrize("options", MODES, ids=" ".join)
def test_entries_are_the_images_that_went_in(options, make_fatbin, compiled):
    inspection = cl.inspect(make_fatbin(*options))
    assert inspection.format == "fatbin"
    assert {image.arch: image.compressed for image in inspection.images} == MODES[options]
    for image in inspection.images:
        if image.format == "cubin":
            (expected,) = cl.inspect(compiled[image.arch][0]).images
        else:
            (expected,) = cl.inspect(compiled["sm_90"][1]).images
        plain = [dataclasses.replace(k, toolkit=image.toolkit) for k in expected.kernels]
        assert list(image.kernels) == plain
        if image.format == "cubin":
            assert image.toolkit == expected.toolkit
            assert (image.size < expected.size) == image.compressed
        else:
            assert image.toolkit is None  # nvFatbin takes the comments away


@pytest.mark.parametrize("options", MODES, ids=" ".join)
def test_embedded_ptx(options, make_fatbin, compiled):
    text = compiled["sm_90"][1].decode()
    (found,) = embedded_ptx(make_fatbin(*options))
    # nvFatbin takes comments and white space away.
    code = re.sub(r"//.*", "", text).split()
    assert found.split() == code
    assert embedded_ptx(cl.Image(text.encode() + b"\0")) == (text,)
    assert embedded_ptx(compiled["sm_90"][0]) == ()


def test_several_and_nested_containers(compiled):
    one = container(entry(compiled["sm_80"][0], sm=80))
    other = container(entry(compiled["sm_90a"][0], flags=0x100011), header=24)
    arches = [image.arch for image in cl.inspect(one + bytes(48) + other + bytes(8)).images]
    assert arches == ["sm_80", "sm_90a"]
    nested = container(entry(one), entry(other))
    assert [image.arch for image in cl.inspect(nested).images] == arches
    deep = one
    for _ in range(6):
        deep = container(entry(deep))
    with pytest.raises(cl.ImageError, match="nested more than"):
        cl.inspect(deep)


def test_wrapper(make_fatbin):
    """What a fatbin's registration points to: the pointer is useless in a file."""
    fatbin = make_fatbin()
    wrapped = struct.pack("<IIQQ", 0x466243B1, 1, 0x1234, 0) + fatbin
    assert cl.inspect(wrapped) == cl.inspect(fatbin)
    assert cl.Image(wrapped).data == fatbin
    with pytest.raises(cl.ImageError, match="fatbin wrapper, which points to"):
        cl.Image(wrapped[:24] + bytes(100))


def test_kinds_without_kernels():
    data = container(entry(LTOIR, kind=8), entry(LTOIR, kind=8, flags=0x100011), entry(b"x", 99))
    images = cl.inspect(data).images
    assert [(i.format, i.arch, i.relocatable) for i in images] == [
        ("ltoir", "lto_90", True),
        ("ltoir", "lto_90a", True),
        ("kind-99", "sm_90", False),
    ]
    assert cl.Image(data).arch == ("lto_90", "lto_90a", "sm_90")


def test_the_suffix_is_the_entry_s_or_the_cubin_s(compiled):
    """Toolkits that did not set the flag in the entry set it in the cubin."""
    cubin = compiled["sm_90a"][0]
    for flags in (0x11, 0x100011):
        assert cl.inspect(container(entry(cubin, flags=flags))).images[0].arch == "sm_90a"
    family = compiled["sm_100f"][0]
    assert cl.inspect(container(entry(family, sm=100, flags=0x200011))).images[0].arch == "sm_100f"


def test_empty_container_has_no_images():
    assert cl.inspect(container()).images == ()


BROKEN = {
    "a container's header is cut": container()[:12],
    "the unknown version 2": container(version=2),
    "the unknown version 1 .header of 8": struct.pack("<IHHQ", 0xBA55ED50, 1, 8, 0),
    "a fatbin container ends at byte": container(size=8),
    "a fatbin entry needs 64 bytes": container(b"\x02\x00"),
    "header of a fatbin entry has 16 bytes": container(entry(b"").replace(b"@\0", b"\x10\0", 1)),
    "a fatbin entry ends at byte": container(
        struct.pack("<HHIQIIHHIIIQQQ", 2, 1, 64, 1 << 60, *[0] * 10)
    ),
    "a fatbin container cannot begin with": container() + b"junkjunk",
    "ELF": container(entry(b"\x7fELF")),
    "PTX without": container(entry(b".version 8.0\n", kind=1)),
    "a zstd frame cannot start with": container(
        entry(b"1234567", kind=1, flags=0x8011, compressed=7, unpacked=9)
    ),
    "LZ4": container(entry(b"\xff" * 8, kind=1, flags=0x2011, compressed=8, unpacked=90)),
    "uses an unknown compression": container(entry(b"1234", kind=1, compressed=4, unpacked=9)),
    "4 compressed bytes claim to be": container(
        entry(b"1234", kind=1, flags=0x8011, compressed=4, unpacked=1 << 40)
    ),
    "a compressed payload ends": container(
        entry(b"1234", kind=1, flags=0x8011, compressed=400, unpacked=900)
    ),
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken(message, tmp_path):
    path = tmp_path / "broken.fatbin"
    path.write_bytes(BROKEN[message])
    pattern = "is truncated" if message.startswith("a container's") else message
    with pytest.raises(cl.ImageError, match=pattern) as caught:
        cl.inspect(path)
    assert str(caught.value).startswith(str(path))
    assert caught.value.offset is not None
