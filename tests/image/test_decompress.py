"""LZ4 and zstd payloads, bit for bit and with a bound on what they may unfold to."""

import contextlib
import sys
from unittest import mock

import lz4.block
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import culaunch as cl
from culaunch._image import decompress, reader

TEXTS = st.one_of(
    st.binary(max_size=4000),
    st.builds(lambda a, n: a * n, st.binary(min_size=1, max_size=40), st.integers(1, 3000)),
    st.lists(st.sampled_from([b"mov.u32 ", b"%r1, ", b";\n", b"\0" * 300])).map(b"".join),
)


def payload_of(data):
    return reader.Reader(memoryview(data), "payload")


def lz4_without_the_library(payload, size):
    with mock.patch.dict(sys.modules, {"lz4.block": None}):
        return decompress.lz4_block(payload, size)


@given(TEXTS)
def test_lz4_agrees_with_the_library(text):
    block = lz4.block.compress(text, mode="high_compression", store_size=False)
    assert lz4_without_the_library(payload_of(block), len(text)) == text
    assert decompress.lz4_block(payload_of(block), len(text)) == text


@pytest.mark.slow
@given(TEXTS, st.integers(0, 5000))
def test_lz4_never_makes_more_than_was_stated(text, size):
    block = lz4.block.compress(text, store_size=False)
    if size != len(text):
        for function in (lz4_without_the_library, decompress.lz4_block):
            with pytest.raises(cl.ImageError, match="payload: is"):
                function(payload_of(block), size)


@given(st.binary(max_size=300), st.integers(0, 2000))
def test_lz4_of_random_bytes(data, size):
    for function in (lz4_without_the_library, decompress.lz4_block):
        with contextlib.suppress(cl.ImageError):
            assert len(function(payload_of(data), size)) == size


def test_lz4_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    block = lz4.block.compress(b"abc" * 100, store_size=False)
    assert decompress.lz4_block(payload_of(block), 300) == b"abc" * 100


@given(TEXTS)
def test_zstd(text):
    frame = zstandard.ZstdCompressor().compress(text)
    assert decompress.zstd_frame(payload_of(frame), len(text)) == text


@given(st.binary(min_size=6, max_size=200), st.integers(0, 1000))
def test_zstd_of_random_bytes(data, size):
    for start in (b"", b"\x28\xb5\x2f\xfd", zstandard.compress(bytes(size))[:7]):
        with contextlib.suppress(cl.ImageError):
            assert len(decompress.zstd_frame(payload_of(start + data), size)) == size


@pytest.mark.parametrize("size", [0, 5, 255, 256, 300, 65535, 65536, 66000, 1 << 20])
def test_zstd_sizes_of_every_width(size):
    frame = zstandard.ZstdCompressor().compress(bytes(size))
    assert decompress.zstd_frame(payload_of(frame), size) == bytes(size)


def test_zstd_frame_that_states_another_size_than_the_entry():
    """The library would allocate what the frame states."""
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(1 << 20)))
    with pytest.raises(cl.ImageError, match="the entry claims 9 bytes, but its zstd frame 1048576"):
        decompress.zstd_frame(payload_of(frame), 9)
    unstated = zstandard.ZstdCompressor(write_content_size=False).compress(b"123456789")
    with pytest.raises(cl.ImageError, match="its zstd frame None"):
        decompress.zstd_frame(payload_of(unstated), 9)


def test_zstd_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "compression", None)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    frame = zstandard.compress(b"text")
    with pytest.raises(cl.MissingDependencyError, match=r"pip install .culaunch\[inspect\]"):
        decompress.zstd_frame(payload_of(frame), 4)


@pytest.mark.needs("compression")
def test_zstd_of_the_standard_library(monkeypatch):
    frame = zstandard.compress(b"text" * 100)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert decompress.zstd_frame(payload_of(frame), 400) == b"text" * 100


def test_listing_only(make_fatbin, monkeypatch):
    """Without kernels no payload is opened, so no decompressor is needed."""
    data = make_fatbin("-compress-all")
    expected = cl.inspect(data).images
    monkeypatch.setattr(decompress, "_zstd_library", None)
    images = cl.inspect(data, kernels=False).images
    assert [(i.format, i.arch, i.size, i.compressed) for i in images] == [
        (i.format, i.arch, i.size, i.compressed) for i in expected
    ]
    assert all(image.compressed and image.kernels == () for image in images)
