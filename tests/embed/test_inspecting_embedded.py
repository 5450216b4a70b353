"""``culaunch.inspect`` reads what culaunch embedded, whatever linked it."""

from __future__ import annotations

import os
import struct
import subprocess

import pytest

import culaunch as cl

USE = """
extern "C" const unsigned char culaunch_image_{name}[];
extern "C" __attribute__((visibility("default"))) const void* {name}() {{
  return culaunch_image_{name};
}}
"""


def ptx(name):
    return (
        f".version 8.0\n.target sm_80\n.address_size 64\n"
        f".visible .entry {name}(.param .u64 x)\n{{ ret; }}\n"
    ).encode()


def listed(path):
    inspection = cl.inspect(path)
    assert inspection.format == "elf"
    return [(image.arch, [kernel.name for kernel in image.kernels]) for image in inspection.images]


@pytest.fixture
def objects(tmp_path, cxx, compile_object):
    """Two images in objects of their own, a third merged into the code that uses all but one."""
    long_name = "of_" + "a" * 100
    for name, size in (("first", 64), ("second", 3000), (long_name, 1)):
        text = ptx(name) + b"//" + b"x" * size + b"\n"
        image = cl.Image(text, signatures={name: ("float*",)})
        cl.cpp.embed(image, tmp_path / f"{name}.o", name)
    code = "".join(USE.format(name=name) for name in ("first", long_name, "merged"))
    flags = ("-fvisibility=hidden", "-ffunction-sections")
    compiled = compile_object(cxx, code, tmp_path / "code.o", *flags)
    cl.cpp.embed(ptx("merged"), tmp_path / "merged.o", "merged", merge_with=compiled)
    return [tmp_path / f"{name}.o" for name in ("merged", "first", "second", long_name)], long_name


def test_an_object(objects):
    (merged, first, *_), _ = objects
    assert listed(first) == [("compute_80", ["first"])]
    assert listed(merged) == [("compute_80", ["merged"])]
    (image,) = cl.inspect(first).images
    assert [param.type for param in image.kernels[0].parameters] == ["float*"]
    assert cl.inspect(first, kernels=False).images[0].kernels == ()


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
def test_a_library(tmp_path, cxx, objects, linker):
    empty = ["-shared", "-o", tmp_path / "empty.so", "-x", "c++", os.devnull]
    probe = [cxx, f"-fuse-ld={linker}", *empty]
    if subprocess.run(probe, check=False, capture_output=True).returncode != 0:
        pytest.skip(f"needs {linker}")
    files, long_name = objects
    library = tmp_path / "library.so"
    command = [cxx, f"-fuse-ld={linker}", "-shared", "-o", library, *files]
    subprocess.run(command, check=True)
    assert sorted(listed(library)) == [
        ("compute_80", [name]) for name in sorted(["merged", "first", "second", long_name])
    ]
    # The linker drops unused images if it is told to; the others are readable.
    subprocess.run([*command, "-Wl,--gc-sections"], check=True)
    assert sorted(listed(library)) == [
        ("compute_80", [name]) for name in sorted(["merged", "first", long_name])
    ]
    shown = subprocess.run(["readelf", "-SW", library], capture_output=True, text=True, check=True)
    (line,) = [line for line in shown.stdout.splitlines() if ".culaunch_images" in line]
    assert line.split()[-4:] == ["A", "0", "0", "64"]


def test_objects_that_were_joined(tmp_path, cxx, objects):
    files, long_name = objects
    subprocess.run([cxx, "-r", "-nostdlib", "-o", tmp_path / "joined.o", *files], check=True)
    assert len(listed(tmp_path / "joined.o")) == 4
    subprocess.run(
        [cxx, "-shared", "-s", "-o", tmp_path / "stripped.so", tmp_path / "joined.o"], check=True
    )
    names = {name for _, (name,) in listed(tmp_path / "stripped.so")}
    assert names == {"merged", "first", "second", long_name}


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (0, b"x", "other data in place of an image's record"),
        (16, struct.pack("<Q", 1 << 60), "an image"),
        (24, struct.pack("<I", 63), "is malformed"),
        (24, struct.pack("<I", 1 << 30), "is malformed"),
        (28, struct.pack("<I", 200), "is malformed"),
        (64, b"?", "is not a cubin, a fatbin or PTX"),
    ],
)
def test_a_damaged_section_is_an_error(objects, offset, value, message):
    (_, first, *_), _ = objects
    data = bytearray(first.read_bytes())
    at = data.index(b"culaunch image\0\0") + offset
    data[at : at + len(value)] = value
    with pytest.raises(cl.ImageError, match=message):
        cl.inspect(bytes(data))
