"""Tell the format of an image from its first bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._base.elf import EM_CUDA, MAGIC
from culaunch._errors import ImageError
from culaunch._image.ptx_tokens import skip_blank

if TYPE_CHECKING:
    import mmap

FATBIN_MAGIC = b"\x50\xed\x55\xba"
_WRAPPER_MAGIC = b"\xb1\x43\x62\x46"
_WRAPPER_SIZE = 24
_LOOKED_AT = 1 << 16  # bytes of possible source

_OTHERS = (
    (b"!<arch>\n", "is an archive: extract its members first (`ar x`)"),
    (b"\xedCN\x7f", "is LTO-IR: link it first"),
    (b"BC\xc0\xde", "is LLVM bitcode, not compiled code"),
    (b"MZ", "is a Windows executable or library, which is not supported"),
    (b"\xcf\xfa\xed\xfe", "is a Mach-O file: it has no CUDA code"),
    (b"\x28\xb5\x2f\xfd", "is zstd-compressed: decompress it first"),
    (b"\x1f\x8b", "is gzip-compressed: decompress it first"),
    (b"PK\x03\x04", "is a zip archive: extract the image first"),
)


def image_format(data: bytes | mmap.mmap | memoryview, source: str) -> str:
    """Return ``"cubin"``, ``"fatbin"`` or ``"ptx"``; refuse everything else."""
    found = file_format(data, source)
    if found == "elf":
        raise ImageError(
            "is a host object or library, which the driver cannot load: culaunch.inspect lists "
            "the CUDA images in it",
            source=source,
            offset=18,
        )
    return found


def file_format(data: bytes | mmap.mmap | memoryview, source: str) -> str:
    """Return ``"cubin"``, ``"fatbin"``, ``"ptx"``, or ``"elf"`` for a host object or library."""
    head = bytes(data[:64])
    if not head:
        raise ImageError("is empty", source=source)
    if head[:4] == MAGIC:
        return _elf_format(head, source)
    if head[:4] == FATBIN_MAGIC or wrapper_size(head):
        return "fatbin"
    if head[:4] == _WRAPPER_MAGIC:
        raise ImageError(
            "starts with a fatbin wrapper, which points to the image in the memory of a process: "
            "give the container that it points to (magic 0xba55ed50)",
            source=source,
            offset=0,
        )
    # PTX begins with comments of its compiler.
    start = skip_blank(data, 0)
    if data[start : start + 8] == b".version":
        return "ptx"
    # Not an image. The message depends on the actual contents.
    for magic, what in _OTHERS:
        if head.startswith(magic):
            raise ImageError(what, source=source, offset=0)
    if b"__global__" in bytes(data[:_LOOKED_AT]):
        raise ImageError("is CUDA source, not an image: compile it first", source=source)
    raise ImageError(
        f"is not a cubin, a fatbin or PTX (it starts with {head[:8].hex(' ')})",
        source=source,
        offset=0,
    )


def wrapper_size(data: bytes | mmap.mmap) -> int:
    """Return the bytes of a fatbin wrapper before the container that it is about: 0 without."""
    follows = data[_WRAPPER_SIZE : _WRAPPER_SIZE + 4] == FATBIN_MAGIC
    return _WRAPPER_SIZE if follows and data[:4] == _WRAPPER_MAGIC else 0


def _elf_format(head: bytes, source: str) -> str:
    if len(head) < 64:
        raise ImageError(
            f"is truncated: an ELF header needs 64 bytes, but there are only {len(head)}",
            source=source,
            offset=len(head),
        )
    # The two bytes that tell 64 bits from 32, and which end of a number comes first.
    if head[4] != 2 or head[5] != 1:
        raise ImageError(
            "is not a 64-bit little-endian ELF file, the only kind that CUDA toolkits write",
            source=source,
            offset=4,
        )
    return "cubin" if int.from_bytes(head[18:20], "little") == EM_CUDA else "elf"
