"""An image as a C++ source, where a compiler must write it: for ``cmake/culaunch_tool.py``."""

from __future__ import annotations

from culaunch._embed.symbols import symbol_names
from culaunch._image.embedded import ALIGN, SECTION, image_record, size_offset

_TEXT = """\
// The image {name}, as culaunch embeds it. Only assembler code, to be the same for every compiler.
asm(R"culaunch(
.pushsection {section}, "a", %progbits
.balign {align}
.byte {record}
.globl {data}
.hidden {data}
.type {data}, %object
.size {data}, {size}
{data}:
.incbin "{path}"
{end}.zero {gap}
{length}.8byte {size}
.popsection
)culaunch");
"""
_LENGTH = """\
.globl {symbol}
.hidden {symbol}
.type {symbol}, %object
.size {symbol}, 8
{symbol}:
"""
_END = ".globl {symbol}\n.hidden {symbol}\n{symbol}:\n"


def assembler_source(path: str, size: int, name: str, style: str) -> str:
    """Return a C++ source with the same definitions as :func:`write_object`, for a file's bytes."""
    symbols = symbol_names(style, name)
    return _TEXT.format(
        name=name,
        section=SECTION,
        align=ALIGN,
        record=", ".join(map(str, image_record(name, size))),
        data=symbols.data,
        size=size,
        # As in C: the assembler reads the name as a string.
        path=path.replace("\\", "\\\\").replace('"', '\\"'),
        gap=size_offset(size) - size,
        end=_END.format(symbol=symbols.end) if symbols.end else "",
        length=_LENGTH.format(symbol=symbols.size) if symbols.size else "",
    )
