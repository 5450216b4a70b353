"""Bad input gives an ImageError: never another exception, much memory, or a long wait."""

import contextlib
import importlib.util
import struct
import subprocess
import sys
import time
from pathlib import Path

import lz4.block
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import culaunch as cl
from culaunch._image import embedded_ptx

HERE = Path(__file__).parent
CORPUS = sorted(
    path for path in (HERE / "hostile").iterdir() if path.is_file() and path.suffix != ".py"
)
PTX = b".version 8.0\n.target sm_80\n.address_size 64\n"

# The messages; the names of the other files tell their error.
MESSAGES = {
    "empty.cubin": "is empty",
    "half-a-header.cubin": "only 40",
    "unknown-abi.cubin": "unknown ABI 99",
    "too-many-sections.cubin": "65534 section headers",
    "attribute-of-unknown-form.cubin": "unknown form 77",
    "host-library-of-nothing.elf": "without CUDA code",
    "zstd-bomb.fatbin": "14 compressed bytes claim to be 2147483648",
    "zstd-bomb-of-modest-claims.fatbin": "its zstd frame 2147483648",
    "lz4-bomb.fatbin": "claim to be 1073741824",
}


@pytest.fixture(scope="module")
def good(data, compiled, make_fatbin):
    """Small good images of every kind."""
    return {
        "old cubin": (data / "sm_75-12.8.cubin").read_bytes(),
        "new cubin": (data / "sm_100f-12.9.cubin").read_bytes(),
        "relocatable": (data / "sm_90-12.9-relocatable.cubin").read_bytes(),
        "ptx": compiled["sm_90"][1],
        "zstd fatbin": make_fatbin("-compress-all"),
        "lz4 fatbin": make_fatbin("-compress-all", "-compress-mode=speed"),
    }


def inspect_anything(data):
    """Inspect; only an ImageError may come out, and it has an offset unless there is nothing."""
    with contextlib.suppress(cl.ImageError):
        cl.inspect(data)
    with contextlib.suppress(cl.ImageError):
        image = cl.Image(data)
        _ = image.arch, repr(image)
        embedded_ptx(image)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_corpus(path):
    with pytest.raises(cl.ImageError) as by_path:
        cl.inspect(path)
    assert str(by_path.value).startswith(str(path))
    assert MESSAGES.get(path.name, "") in str(by_path.value)
    assert by_path.value.offset is not None or path.stat().st_size == 0
    with pytest.raises(cl.ImageError) as by_bytes:
        cl.inspect(path.read_bytes())
    assert by_bytes.value.offset == by_path.value.offset


def test_corpus_is_what_its_script_makes():
    spec = importlib.util.spec_from_file_location("make_hostile", HERE / "hostile" / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert {path.name: path.read_bytes() for path in CORPUS} == make.FILES


@pytest.mark.parametrize("name", ["old cubin", "new cubin", "zstd fatbin", "lz4 fatbin"])
def test_every_truncation_is_found(good, name):
    data = good[name]
    for size in range(0, len(data) - 8, 1 if name == "old cubin" else 7):
        with pytest.raises(cl.ImageError):
            cl.inspect(data[:size])


@pytest.mark.slow
def test_truncated_ptx(good):
    for size in range(0, len(good["ptx"]), 5):
        inspect_anything(good["ptx"][:size])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["old cubin", "new cubin", "relocatable"])
def test_every_byte_changed(good, name):
    data = bytearray(good[name])
    for position in range(0, len(data), 1 if len(data) < 5000 else 3):
        before = data[position]
        for value in (0xFF, before ^ 1):
            data[position] = value
            with contextlib.suppress(cl.ImageError):
                cl.inspect(data)
        data[position] = before


@pytest.mark.slow
@settings(max_examples=400)
@given(name=st.sampled_from(["ptx", "zstd fatbin", "lz4 fatbin", "new cubin"]), data=st.data())
def test_changes_anywhere(good, name, data):
    image = bytearray(good[name])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(image) - 9))
        change = data.draw(st.binary(min_size=1, max_size=8))
        image[at : at + len(change)] = change
    inspect_anything(bytes(image))


STARTS = [
    b"",
    b"\x7fELF\x02\x01\x01\x41\x08" + bytes(9) + b"\xbe\x00",
    b"\x7fELF\x02\x01\x01\x33\x07" + bytes(9) + b"\xbe\x00",
    b"\x7fELF\x02\x01\x01" + bytes(11) + b"\x3e\x00",
    b"\x50\xed\x55\xba\x01\x00\x10\x00",
    PTX + b".entry k(",
]


@settings(max_examples=400)
@given(st.sampled_from(STARTS), st.binary(max_size=400))
def test_random_bytes(start, data):
    inspect_anything(start + data)


def test_deep_in_the_stack(good):
    """Recursive parsers must not depend on the free stack."""

    def deeper(levels):
        return deeper(levels - 1) if levels else cl.inspect(good["old cubin"])

    assert deeper(300).images
    name = "_Z1k" + "P" * 5000 + "i"
    text = PTX + f".entry {name}() {{}}".encode()
    assert cl.inspect(text).images[0].kernels[0].demangled == name


def section(kind, offset, size, link=0, info=0, name=0):
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, info, 0, 0)


def elf(body, headers):
    """Return a cubin of sm_90 with these section headers after its contents."""
    ident = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
    at = 64 + len(body)
    count = len(headers) // 64
    fields = (2, 190, 1, 0, 0, at, 90 << 8, 64, 56, 0, 64, min(count, 0xFFFF) * (count < 65280), 1)
    headers = bytearray(headers)
    if count >= 65280:
        struct.pack_into("<Q", headers, 32, count)
    return struct.pack("<16sHHIQQQIHHHHHH", ident, *fields) + body + bytes(headers)


def many_symbols(count):
    """Kernels whose names are the tails of one long name."""
    names = b"a" * count + b"\0"
    symbols = b"".join(struct.pack("<IBBHQQ", index, 2, 0x10, 1, 0, 0) for index in range(count))
    headers = (
        section(0, 0, 0)
        + section(3, 64, len(names))
        + section(2, 64 + len(names), len(symbols), link=1)
    )
    return elf(names + symbols, headers)


def shared_records(count):
    """Many sections of attributes that are the same bytes, for as many kernels."""
    records = b"".join(
        struct.pack("<BBHIHHI", 4, 0x17, 12, 0, index, index, 1 << 18) for index in range(8000)
    )
    names = b"\0" + b"".join(b"k%06d\0" % index for index in range(count))
    symbols = b"".join(
        struct.pack("<IBBHQQ", 1 + 8 * index, 2, 0x10, 3 + index, 0, 0) for index in range(count)
    )
    body = names + symbols + records
    headers = [
        section(0, 0, 0),
        section(3, 64, len(names)),
        section(2, 64 + len(names), len(symbols), link=1),
        *(section(1, 64, 0) for _ in range(count)),
        *(
            section(0x70000000, 64 + len(names) + len(symbols), len(records), info=3 + index)
            for index in range(count)
        ),
    ]
    return elf(body, b"".join(headers))


def container(*entries):
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def entry(payload, kind, flags=0x11, compressed=0, unpacked=0):
    fields = (kind, 1, 64, len(payload), compressed, 0, 0, 0, 90, 0, 0, flags, 0, unpacked)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + payload


def bomb(compress, flags, size):
    payload = compress(bytes(size))
    padding = bytes(12 << 20)
    return container(entry(payload, 1, flags, len(payload), size), entry(padding, 99))


def growing_names(count):
    """Kernels whose names are short when mangled and long when not."""
    doubling = "1aIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in "01234567")
    return (
        PTX
        + "".join(
            f".entry _Z{len(str(index)) + 1}k{index}{doubling}() {{}}\n" for index in range(count)
        ).encode()
    )


LARGE = {
    "many symbols": lambda: many_symbols(300_000),
    "shared records": lambda: shared_records(60_000),
    "many PTX kernels": lambda: PTX + b"".join(b".entry k%x(){}\n" % i for i in range(500_000)),
    "many PTX parameters": lambda: (
        PTX + b".entry k(" + b",".join(b".param .b8 a[0]" for _ in range(500_000)) + b"){}"
    ),
    "many distinct parameters": lambda: (
        PTX
        + b"".join(
            b".entry k%x(.param .b8 a[%d],.param .b8 b[%d]){}\n" % (i, i % 60000, i // 60000 + 1)
            for i in range(200_000)
        )
    ),
    "growing names": lambda: growing_names(75_000),
    "many entries": lambda: container(*(entry(b"", 8) for _ in range(120_000))),
    "nested": lambda: container(entry(container(entry(bytes(9 << 20), 99)), 2)),
    "zstd at the limit": lambda: bomb(zstandard.ZstdCompressor().compress, 0x8011, 24 << 20),
    "zstd bomb": lambda: bomb(zstandard.ZstdCompressor().compress, 0x8011, 500 << 20),
    "lz4 bomb": lambda: bomb(
        lambda data: lz4.block.compress(data, store_size=False), 0x2011, 200 << 20
    ),
}


# The growth of a process from before an inspection to its peak: everything counts, the mapped
# file and what libraries written in C allocate as well.
MEASURE = """
import contextlib, re, sys
import culaunch as cl
import lz4.block, zstandard

def memory(field):
    with open("/proc/self/status") as file:
        return int(re.search(field + r":\\s+(\\d+) kB", file.read())[1]) << 10

cl.inspect(b".version 8.0 .target sm_80 .entry k() {}")
before = memory("VmRSS")
with contextlib.suppress(cl.ImageError):
    cl.inspect(sys.argv[1])
print(memory("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_memory_is_at_most_four_times_the_file(name, tmp_path):
    path = tmp_path / "large"
    path.write_bytes(LARGE[name]())
    size = path.stat().st_size
    assert size > 7 << 20
    command = [sys.executable, "-c", MEASURE, str(path)]
    growth = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert growth <= 4 * size, f"{growth} bytes for a file of {size}"


SLOW = {
    "comments that begin": b"/* /" * 500_000,
    "comments": b"/**/" * 500_000 + b".entry k() {}",
    "quotes": b'"' * 2_000_001 + b"\n.entry k() {}",
    "entries on one line": b".entry k() {} " * 1 + b"x.entry " * 250_000,
    "entries in one comment": b"//" + b".entry " * 280_000,
    "spaces": b".entry" + b" " * 2_000_000,
    "slashes": b"/ " * 1_000_000 + b".entry k() {}",
    "stars": b".entry k /*" + b"*" * 2_000_000,
    "line comments": b".entry k //\n" + b"//\n" * 700_000,
}


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", SLOW)
def test_time_is_linear(name):
    text = PTX + SLOW[name]
    before = time.process_time()
    inspect_anything(text)
    assert time.process_time() - before < 10


def test_zeros_after_a_container_are_skipped_quickly():
    before = time.process_time()
    assert cl.inspect(container() + bytes(50 << 20)).images == ()
    assert time.process_time() - before < 5
