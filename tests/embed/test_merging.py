"""culaunch.cpp.embed(merge_with=...): an image inside a compiler's object, under local symbols."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import culaunch as cl

# One object that does what compilers put symbol numbers in odd places for: templates (section
# groups), exceptions, thread-local and static data, references before and after the image's.
CODE = """
#include <stdexcept>
#include <string>
#include <vector>
extern "C" __attribute__((visibility("hidden"))) const unsigned char culaunch_image_NAME[];
extern "C" __attribute__((visibility("hidden"))) const unsigned long long culaunch_size_NAME;
#define EXPORT extern "C" __attribute__((visibility("default")))
namespace {
thread_local int calls = 0;
static std::vector<std::string> texts{"one", "two"};
char zeros[1 << 20];  // more bytes than the object file has
const void* (*const table[])() = {[]() -> const void* { return culaunch_image_NAME; }};
}
template <class T> T twice(T x) { if (x < T(0)) throw std::out_of_range("negative"); return x + x; }
EXPORT char* roomTAG() { return zeros; }
EXPORT const void* bytesTAG() { ++calls; return table[0](); }
EXPORT unsigned long long sizeTAG() { return culaunch_size_NAME; }
EXPORT int checkTAG(int x) {
  try { return twice(x) + static_cast<int>(twice(0.5)) + static_cast<int>(texts.size()) + calls; }
  catch (const std::out_of_range& e) { return -static_cast<int>(std::string(e.what()).size()); }
}
"""

# Without headers: clang needs no sysroot then to compile it for another processor.
FREESTANDING = """
extern "C" __attribute__((visibility("hidden"))) const unsigned char culaunch_image_k[];
extern "C" __attribute__((visibility("hidden"))) const unsigned long long culaunch_size_k;
extern int other(const void*);
template <class T> T plus(T x) { static T kept = 0; return kept += x; }
int check(int x) { return plus(x) + other(culaunch_image_k) + plus(x * 2.0) + culaunch_size_k; }
const void* table[] = {culaunch_image_k, &culaunch_size_k, (const void*)&check};
int (*pointer)(const void*) = other;
"""


def code(name="k", tag=""):
    return CODE.replace("NAME", name).replace("TAG", tag)


def image_in(library, tag=""):
    loaded = ctypes.CDLL(str(library))
    start, size = getattr(loaded, f"bytes{tag}"), getattr(loaded, f"size{tag}")
    start.restype, size.restype = ctypes.c_void_p, ctypes.c_ulonglong
    check = getattr(loaded, f"check{tag}")
    address = start()
    assert address % 64 == 0
    assert (check(4), check(-1)) == (8 + 1 + 2 + 1, -len("negative"))
    return ctypes.string_at(address, size())


@pytest.mark.sweep(4)
@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    "flags", [(), ("-g",), ("-ffunction-sections", "-fdata-sections", "-g"), ("-O3", "-fno-plt")]
)
def test_the_code_works_as_before_and_finds_its_image(
    tmp_path, cubin, cxx, compile_object, link_library, symbols_of, flags
):
    compiled = compile_object(cxx, code(), tmp_path / "code.o", *flags)
    cl.cpp.embed(cubin, tmp_path / "merged.o", "k", merge_with=compiled)
    symbols = symbols_of(tmp_path / "merged.o")
    for symbol in ("culaunch_image_k", "culaunch_size_k"):
        assert symbols[symbol][2:5] == ("OBJECT", "LOCAL", "DEFAULT")
    library = link_library(cxx, tmp_path / "lib.so", tmp_path / "merged.o")
    assert image_in(library) == cubin.read_bytes()


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_two_objects_of_one_library_use_one_name(
    tmp_path, cxx, compile_object, link_library, stand_in_cubin
):
    merged = []
    for tag in "AB":
        compiled = compile_object(cxx, code(tag=tag), tmp_path / f"{tag}.o")
        merged.append(tmp_path / f"merged{tag}.o")
        cl.cpp.embed(stand_in_cubin(500, tag.encode()), merged[-1], "k", merge_with=compiled)
    library = link_library(cxx, tmp_path / "lib.so", *merged)
    for tag in "AB":
        assert image_in(library, tag) == stand_in_cubin(500, tag.encode())


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_one_object_takes_two_images(tmp_path, cxx, compile_object, link_library, stand_in_cubin):
    source = code("first", "A") + (
        'extern "C" const unsigned char culaunch_image_second[];\n'
        'extern "C" const unsigned long long culaunch_size_second;\n'
        "EXPORT const void* bytesB() { return culaunch_image_second; }\n"
        "EXPORT unsigned long long sizeB() { return culaunch_size_second; }\n"
        "EXPORT int checkB(int x) { return x > 0 ? 12 : -8; }\n"
    )
    obj = compile_object(cxx, source, tmp_path / "code.o")
    for name in ("second", "first"):  # in place: the output of one call is the input of the next
        cl.cpp.embed(stand_in_cubin(500, name.encode()), obj, name, merge_with=obj)
    library = link_library(cxx, tmp_path / "lib.so", obj)
    assert image_in(library, "A") == stand_in_cubin(500, b"first")
    assert image_in(library, "B") == stand_in_cubin(500, b"second")
    with pytest.raises(cl.ImageError, match="already has an image named 'first'"):
        cl.cpp.embed(stand_in_cubin(), tmp_path / "again.o", "first", merge_with=obj)


@pytest.mark.needs("g++")
def test_code_written_for_tvm_ffi(tmp_path, cubin, cxx, compile_object, link_library):
    source = (
        'extern "C" const char __tvm_ffi__cubin_k[];\n'
        'extern "C" const char __tvm_ffi__cubin_k_end[];\n'
        'extern "C" const void* bytes() { return __tvm_ffi__cubin_k; }\n'
        'extern "C" unsigned long long size() {\n'
        "  return __tvm_ffi__cubin_k_end - __tvm_ffi__cubin_k;\n"
        "}\n"
        'extern "C" int check(int x) { return x > 0 ? 12 : -8; }\n'
    )
    compiled = compile_object(cxx, source, tmp_path / "code.o")
    merged = tmp_path / "merged.o"
    cl.cpp.embed(cubin, merged, "k", merge_with=compiled, symbol_style="tvm-ffi")
    assert image_in(link_library(cxx, tmp_path / "lib.so", merged)) == cubin.read_bytes()


@pytest.mark.slow
@pytest.mark.needs("g++", "tvm_ffi", "nvidia.cu13")
def test_the_macro_of_tvm_ffi_itself(tmp_path, cubin, cxx, compile_object, symbols_of):
    import nvidia.cu13
    from tvm_ffi import libinfo

    # Several packages are installed into this one, not always in one place, and a toolkit serves
    # as well; TVM-FFI's header needs the runtime's headers whole.
    places = [Path(path) / "include" for path in nvidia.cu13.__path__]
    places.append(Path("/usr/local/cuda/include"))
    headers = str(next(place for place in places if (place / "crt/host_config.h").is_file()))
    source = (
        "#include <tvm/ffi/extra/cuda/cubin_launcher.h>\n"
        "TVM_FFI_EMBED_CUBIN(my_kernels);\n"
        "void* get() {\n"
        '  static auto kernel = TVM_FFI_EMBED_CUBIN_GET_KERNEL(my_kernels, "k");\n'
        "  return kernel.GetHandle();\n"
        "}\n"
    )
    flags = ("-std=c++17", "-O0", "-isystem", libinfo.find_include_path(), "-isystem", headers)
    compiled = compile_object(cxx, source, tmp_path / "code.o", *flags)
    merged = tmp_path / "merged.o"
    cl.cpp.embed(cubin, merged, "my_kernels", merge_with=compiled, symbol_style="tvm-ffi")
    # The macro's own reference; nothing else of the object has changed.
    was, now = symbols_of(compiled), symbols_of(merged)
    assert now.pop("__tvm_ffi__cubin_my_kernels")[1:4] == (1000, "OBJECT", "LOCAL")
    was.pop("__tvm_ffi__cubin_my_kernels")
    assert now == was


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("target", ["x86_64-linux-gnu", "aarch64-linux-gnu"])
def test_every_relocation_keeps_its_symbol(
    tmp_path, cubin, clang, compile_object, readelf, symbols_of, target
):
    flags = ("-target", target, "-fno-exceptions", "-faddrsig", "-ffunction-sections")
    compiled = compile_object(clang, FREESTANDING, tmp_path / "code.o", *flags)
    cl.cpp.embed(cubin, tmp_path / "merged.o", "k", merge_with=compiled)
    before, after = (readelf(tmp_path / n, "--relocs") for n in ("code.o", "merged.o"))

    def lines(text):
        # Offset, type, symbol's name and addend; not its number or value.
        found = re.findall(
            r"^([0-9a-f]{16})\s+[0-9a-f]{16} (\S+)\s+[0-9a-f]{16} (.*)$", text, re.MULTILINE
        )
        assert found
        return found

    assert lines(before) == lines(after)
    groups = [readelf(tmp_path / n, "--section-groups") for n in ("code.o", "merged.o")]
    assert groups[0] == groups[1]
    was, now = symbols_of(compiled), symbols_of(tmp_path / "merged.o")
    for name, facts in was.items():
        if not name.startswith("culaunch_"):
            assert now[name] == facts
    assert now["culaunch_image_k"][1:5] == (1000, "OBJECT", "LOCAL", "DEFAULT")


@pytest.mark.slow
def test_what_cannot_be_merged(tmp_path, cubin, cxx, compile_object):
    output = tmp_path / "merged.o"
    output.write_bytes(b"before")

    def refused(match, path, **options):
        with pytest.raises(cl.ImageError, match=match):
            cl.cpp.embed(cubin, output, options.pop("name", "k"), merge_with=path, **options)
        assert output.read_bytes() == b"before"

    with pytest.raises(FileNotFoundError, match=r"none\.o"):
        cl.cpp.embed(cubin, output, "k", merge_with=tmp_path / "none.o")
    (tmp_path / "text.o").write_text("no object")
    refused(r"text\.o: is not an ELF object file", tmp_path / "text.o")
    refused("is for ELF machine 190", cubin_object(tmp_path))
    asks = compile_object(cxx, code("mine"), tmp_path / "asks.o")
    refused(r"asks\.o: does not refer to an image named 'k'.*refers to 'mine'", asks)
    refused("is for x86_64, but machine='aarch64'", asks, name="mine", machine="aarch64")
    silent = compile_object(cxx, "int x;", tmp_path / "silent.o")
    refused("it uses no CULAUNCH_EMBED_CUBIN", silent)
    lto = compile_object(cxx, code(), tmp_path / "lto.o", "-flto")
    refused("compiled with -flto", lto)
    library = tmp_path / "lib.so"
    subprocess.run([cxx, "-shared", "-o", library, silent], check=True)
    refused("must be a relocatable object", library)
    refused("is truncated|has no section table", cut(asks, 200))
    with pytest.raises(FileNotFoundError):
        cl.cpp.embed(tmp_path / "no.cubin", output, "mine", merge_with=asks)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


def cubin_object(tmp_path):
    data = bytearray(128)
    data[:7] = b"\x7fELF\x02\x01\x01"
    data[16:20] = struct.pack("<HH", 1, 190)
    (tmp_path / "device.o").write_bytes(data)
    return tmp_path / "device.o"


def cut(path, size):
    short = path.with_name("short.o")
    short.write_bytes(path.read_bytes()[:size])
    return short


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, cxx, compile_object, stand_in_cubin):
    folder = tmp_path_factory.mktemp("hostile")
    data = compile_object(cxx, code(), folder / "code.o").read_bytes()
    return folder, data, stand_in_cubin(100)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_a_damaged_object_is_refused_or_merged_but_never_a_crash(hostile, data):
    folder, good, image = hostile
    bad = bytearray(good)
    table = struct.unpack_from("<Q", good, 40)[0]
    interesting = st.one_of(
        st.integers(0, 63), st.integers(table, len(good) - 1), st.integers(0, len(good) - 1)
    )
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(interesting)] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    if data.draw(st.booleans()):
        del bad[data.draw(st.integers(0, len(bad))) :]
    (folder / "bad.o").write_bytes(bad)
    try:
        cl.cpp.embed(image, folder / "out.o", "k", merge_with=folder / "bad.o")
    except cl.ImageError as error:
        assert str(folder / "bad.o") in str(error)  # noqa: PT017
