"""An image: told apart by its first bytes, equal by its bytes, parsed when asked."""

import copy
import dataclasses
import os
import pickle
import stat

import pytest

import culaunch as cl

PTX = b"//\n// comment\n/* another */ .version 8.5\n.target sm_90a\n.address_size 64\n"


@pytest.fixture(scope="module")
def cubin(compiled):
    return compiled["sm_90a"][0]


def test_formats(cubin, make_fatbin):
    assert cl.Image(cubin).format == "cubin"
    assert cl.Image(PTX).format == "ptx"
    assert cl.Image(make_fatbin()).format == "fatbin"


def test_architectures(cubin, make_fatbin):
    assert cl.Image(cubin).arch == ("sm_90a",)
    assert cl.Image(PTX).arch == ("compute_90a",)
    assert cl.Image(make_fatbin()).arch == ("sm_80", "sm_90a", "sm_100f", "compute_90")


def test_kernels_of_a_fatbin_are_listed_once_with_the_facts_of_the_first_cubin(
    compiled, make_fatbin
):
    kernels = {kernel.name: kernel for kernel in cl.Image(make_fatbin()).kernels}
    first = {kernel.name: kernel for kernel in cl.Image(compiled["sm_80"][0]).kernels}
    assert kernels.keys() >= first.keys()
    assert all(kernels[name] == first[name] for name in first)
    assert kernels["pair"].cluster == (2, 1, 1)  # only from sm_90 on


def test_is_frozen(cubin):
    image = cl.Image(cubin, names={"a": "b"})
    with pytest.raises(dataclasses.FrozenInstanceError):
        image.data = b""
    with pytest.raises(TypeError):
        image.names["c"] = "d"


def test_names_are_a_copy(cubin):
    names = {"scale<float>": "_Z5scaleIfEvPT_"}
    image = cl.Image(cubin, names=names)
    names.clear()
    assert image.names == {"scale<float>": "_Z5scaleIfEvPT_"}


def test_equality_is_that_of_the_bytes(cubin):
    one = cl.Image(cubin, path="a.cubin", log="warning")
    assert one == cl.Image(cubin)
    assert hash(one) == hash(cl.Image(cubin))
    assert one != cl.Image(PTX)


def test_pickle_and_copy_keep_everything(cubin):
    image = cl.Image(
        cubin,
        path="a.cubin",
        names={"k": "_Z1kv"},
        signatures={"many": ("float*", None)},
        log="text",
    )
    for same in (pickle.loads(pickle.dumps(image)), copy.deepcopy(image)):
        for field in dataclasses.fields(image):
            assert getattr(same, field.name) == getattr(image, field.name)


def test_open(tmp_path, cubin):
    path = tmp_path / "kernel.cubin"
    path.write_bytes(cubin)
    opened = cl.Image.open(path)
    assert (opened.data, opened.path) == (cubin, str(path))
    assert cl.Image.open(str(path)) == opened
    assert cl.Image.open(opened) is opened
    assert cl.Image.open(bytearray(cubin)) == opened
    assert cl.Image.open(memoryview(cubin)).path is None


def test_opening_parses_nothing_but_the_format(tmp_path):
    """The first step of loading costs nothing: a damaged cubin is found when it is parsed."""
    damaged = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(9) + b"\xbe\x00" + b"\xff" * 44
    path = tmp_path / "damaged.cubin"
    path.write_bytes(damaged)
    image = cl.Image.open(path)
    assert "unreadable" in repr(image)
    with pytest.raises(cl.ImageError, match=r"damaged\.cubin: is truncated or corrupt"):
        _ = image.kernels


def test_save_replaces_and_leaves_nothing_else(tmp_path, cubin):
    path = tmp_path / "kernel.cubin"
    path.write_bytes(b"old")
    cl.Image(cubin).save(path)
    assert path.read_bytes() == cubin
    assert os.listdir(tmp_path) == ["kernel.cubin"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_save_that_fails_leaves_nothing(tmp_path, cubin):
    folder = tmp_path / "kernel.cubin"
    folder.mkdir()
    with pytest.raises(OSError, match="kernel"):
        cl.Image(cubin).save(folder)
    assert os.listdir(tmp_path) == ["kernel.cubin"]


def test_repr(cubin):
    assert repr(cl.Image(PTX, path="a.ptx")) == (
        f"<culaunch.Image ptx compute_90a, {len(PTX)} bytes from 'a.ptx'>"
    )
    assert repr(cl.Image(cubin)) == f"<culaunch.Image cubin sm_90a, {len(cubin)} bytes>"


@pytest.mark.parametrize("wrong", [3, None, 2.5, ["a"]])
def test_open_refuses_what_is_no_source(wrong):
    with pytest.raises(TypeError, match="must be a path, bytes or an Image"):
        cl.Image.open(wrong)


def test_data_must_be_bytes():
    with pytest.raises(TypeError, match="data must be bytes"):
        cl.Image("text")


def test_ptx_as_text_is_explained():
    with pytest.raises(cl.ImageError, match=r"text\.encode\(\)"):
        cl.Image.open(PTX.decode())


def test_a_missing_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        cl.Image.open(tmp_path / "none")


REFUSED = {
    b"": "is empty",
    b"\0" * 64: "is not a cubin, a fatbin or PTX .it starts with 00 00",
    b"#include <a>\n__global__ void k() {}": "is CUDA source, not an image: compile it first",
    b"garbage": "is not a cubin, a fatbin or PTX",
    b".visible": "is not a cubin",
    b"\x7fELF": "is truncated: an ELF header needs 64 bytes, but there are only 4",
    b"\x7fELF\x01\x01" + bytes(58): "not a 64-bit little-endian ELF",
    b"\x7fELF\x02\x02" + bytes(58): "not a 64-bit little-endian ELF",
    b"\x7fELF\x02\x01" + bytes(58): "a host object or library",
    b"\xb1\x43\x62\x46" + bytes(60): "fatbin wrapper",
    b"!<arch>\n" + bytes(60): "an archive",
    b"BC\xc0\xde" + bytes(60): "LLVM bitcode",
    b"\xedCN\x7f" + bytes(60): "LTO-IR",
    b"PK\x03\x04" + bytes(60): "a zip archive",
    b"\x1f\x8b" + bytes(60): "gzip-compressed",
}


@pytest.mark.parametrize("data", REFUSED, ids=REFUSED.values())
def test_what_is_no_image_is_named(data):
    with pytest.raises(cl.ImageError, match=REFUSED[data]) as caught:
        cl.Image(data, path="file.bin")
    assert str(caught.value).startswith("file.bin: ")


def test_directory_and_device(tmp_path):
    with pytest.raises(cl.ImageError, match="is a directory"):
        cl.Image.open(tmp_path)
    with pytest.raises(cl.ImageError, match="not a regular file"):
        cl.Image.open("/dev/zero")
