"""Make the hostile files of this folder, each from a good one: ``python make.py``.

A file is named after what is wrong with it; `test_hostile.py` says what must be answered.
"""

import struct
from pathlib import Path

HERE = Path(__file__).parent
CUBIN = (HERE.parent / "data" / "sm_75-12.8.cubin").read_bytes()
NEW_CUBIN = (HERE.parent / "data" / "sm_100a-12.8.cubin").read_bytes()
PTX = (HERE.parent / "data" / "kernels.ptx").read_bytes()

TABLE, COUNT, NAMES = 40, 60, 62  # in the ELF header
NAME, TYPE, OFFSET, SIZE, LINK, INFO = 0, 4, 24, 32, 40, 44  # in a section header


def patched(data, *changes):
    out = bytearray(data)
    for offset, layout, value in changes:
        struct.pack_into(layout, out, offset, value)
    return bytes(out)


def header_of(data, kind):
    """Return the offset of the first section header of a type."""
    table, count = struct.unpack_from("<Q", data, TABLE)[0], data[COUNT]
    headers = (table + 64 * index for index in range(count))
    return next(at for at in headers if struct.unpack_from("<I", data, at + TYPE)[0] == kind)


def section(data, kind, *changes):
    """Change fields of the first section header of a type."""
    at = header_of(data, kind)
    return patched(data, *((at + field, layout, value) for field, layout, value in changes))


def contents(data, kind):
    """Return the offset of the contents of the first section of a type."""
    return struct.unpack_from("<Q", data, header_of(data, kind) + OFFSET)[0]


def entry(payload, kind=2, flags=0x11, compressed=0, unpacked=0, header=64, stored=None):
    stored = len(payload) if stored is None else stored
    fields = (kind, 1, header, stored, compressed, 0, 0, 0, 90, 0, 0, flags, 0, unpacked)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + payload


def container(body, size=None):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body) if size is None else size) + body


SYMTAB, NOTE, INFO_SECTION, COMPAT = 2, 7, 0x70000000, 0x70000086
INFO_AT = contents(CUBIN, INFO_SECTION)
SYMBOL_AT = contents(CUBIN, SYMTAB)

FILES = {
    "empty.cubin": b"",
    "only-the-magic.cubin": CUBIN[:4],
    "half-a-header.cubin": CUBIN[:40],
    "only-the-header.cubin": CUBIN[:64],
    "section-table-past-the-end.cubin": patched(CUBIN, (TABLE, "<Q", len(CUBIN) - 32)),
    "section-table-far-away.cubin": patched(CUBIN, (TABLE, "<Q", (1 << 64) - 64)),
    "section-headers-of-zero-bytes.cubin": patched(CUBIN, (58, "<H", 0)),
    "too-many-sections.cubin": patched(CUBIN, (COUNT, "<H", 0xFFFE)),
    "sections-beyond-counting.cubin": patched(
        CUBIN,
        (COUNT, "<H", 0),
        (struct.unpack_from("<Q", CUBIN, TABLE)[0] + SIZE, "<Q", 1 << 58),
    ),
    "no-name-section.cubin": patched(CUBIN, (NAMES, "<H", 0xFFFE)),
    "unknown-abi.cubin": patched(CUBIN, (8, "<B", 99)),
    "no-architecture.cubin": patched(CUBIN, (48, "<I", 0)),
    "symbols-past-the-end.cubin": section(CUBIN, SYMTAB, (OFFSET, "<Q", len(CUBIN) - 8)),
    "symbols-of-odd-size.cubin": section(CUBIN, SYMTAB, (SIZE, "<Q", 25)),
    "symbols-of-negative-size.cubin": section(CUBIN, SYMTAB, (SIZE, "<q", -24)),
    "symbol-names-nowhere.cubin": section(CUBIN, SYMTAB, (LINK, "<I", 0xFFFFFFFF)),
    "symbol-name-past-the-end.cubin": patched(
        CUBIN, *((SYMBOL_AT + 24 * index, "<I", 1 << 30) for index in range(1, 15))
    ),
    "attributes-past-the-end.cubin": section(CUBIN, INFO_SECTION, (SIZE, "<Q", 1 << 40)),
    "attribute-of-unknown-form.cubin": patched(CUBIN, (INFO_AT, "<B", 77)),
    "attribute-without-an-end.cubin": patched(CUBIN, (INFO_AT + 2, "<H", 0xFFFF)),
    "attribute-too-short.cubin": patched(CUBIN, (INFO_AT + 2, "<H", 4)),
    "note-past-the-end.cubin": patched(
        NEW_CUBIN, (contents(NEW_CUBIN, NOTE) + 4, "<I", 0xFFFFFFF0)
    ),
    "host-library-of-nothing.elf": patched(CUBIN, (18, "<H", 62), (TABLE, "<Q", 0)),
    "container-past-the-end.fatbin": container(b"", 1 << 62),
    "entry-header-of-nothing.fatbin": container(entry(b"", header=0)),
    "entry-past-the-end.fatbin": container(entry(b"", stored=(1 << 64) - 64)),
    "entry-wraps-around.fatbin": container(entry(b"", header=0xFFFFFFFF, stored=(1 << 64) - 1)),
    "zstd-bomb.fatbin": container(
        # A frame of one block, "two gigabytes of zeros".
        entry(
            bytes.fromhex("28b52ffda0000000800200010000"),
            1, 0x8011, 14, 0x80000000,
        )
    ),
    "zstd-bomb-of-modest-claims.fatbin": container(
        entry(bytes.fromhex("28b52ffda0000000800200010000"), 1, 0x8011, 14, 1000)
    ),
    "lz4-bomb.fatbin": container(entry(b"\x1f\0\1\0" + b"\xff" * 4000, 1, 0x2011, 4004, 1 << 30)),
    "lz4-bomb-of-modest-claims.fatbin": container(
        entry(b"\x1f\0\1\0" + b"\xff" * 4000, 1, 0x2011, 4004, 1000)
    ),
    "lz4-before-the-start.fatbin": container(entry(b"\x10a\xff\xff\0", 1, 0x2011, 5, 100)),
    "unended-comment.ptx": b"/* .version 8.0 .target sm_80",
    "unended-entry.ptx": PTX[: PTX.index(b"tile_3")],
    "endless-name.ptx": b".version 8.0 .target sm_80 .entry " + b"a" * 3000,
    "parameters-without-end.ptx": b".version 8.0 .target sm_80 .entry k("
    + b".param .b8 a[9]," * 99,
    "huge-parameter.ptx": b".version 8.0 .target sm_80 .entry k(.param .b8 a[4294967295]) {}",
    "not-utf-8.ptx": b".version 8.0 .target sm_80 .entry \xff\xfe() {}",
}  # fmt: skip

if __name__ == "__main__":
    for name, data in FILES.items():
        (HERE / name).write_bytes(data)
