"""The ``__device__`` and ``__constant__`` variables of an image, by their names in it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from culaunch._image.elf import Elf
from culaunch._image.info import VariableInfo
from culaunch._image.names import demangle

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable

    from culaunch._image.reader import Reader


_OBJECTS = (1, 13)  # STT_OBJECT in finished images, CUDA's own kind in relocatable ones
# Where variables are; other banks of constants are the compiler's, and kernels' parameters.
_CONSTANT = b".nv.constant3"
_PREFIXES = (b".nv.global", _CONSTANT)
_DECLARATION = re.compile(
    rb"^[ \t]*(?:\.(?:visible|weak|common)[ \t]+)?\.(global|const)\b([^;={]*)", re.MULTILINE
)
_DECLARED = re.compile(rb"([\w$]+)[ \t]*((?:\[[^\]]*\][ \t]*)*)\Z")
_ELEMENT = re.compile(rb"(?:\.v([248])[ \t]+)?\.[busf](8|16|32|64|128)\b")


def cubin_variables(reader: Reader) -> tuple[VariableInfo, ...]:
    """Return the variables of a cubin, in the order of its symbols."""
    elf = Elf(reader)
    # By section, since a symbol's name does not tell constants from others.
    homes = {
        section.number: elf.is_named(section, _CONSTANT)
        for section in elf.sections()
        if any(elf.is_named(section, prefix) for prefix in _PREFIXES)
    }
    found = [
        (one.text("the name of a variable"), one.size, homes[one.section])
        for one in elf.symbols()
        if one.kind in _OBJECTS and one.section in homes
    ]
    return _of_users(found)


def ptx_variables(text: bytes | mmap.mmap) -> tuple[VariableInfo, ...]:
    """Return the variables of PTX, in the order of their declarations."""
    found = []
    for declaration in _DECLARATION.finditer(text):
        match = _DECLARED.search(declaration[2].strip())
        if match is not None:
            size = _size(declaration[2], match[2])
            found.append((match[1].decode(), size, declaration[1] == b"const"))
    return _of_users(found)


def _of_users(found: Iterable[tuple[str, int | None, bool]]) -> tuple[VariableInfo, ...]:
    # A dollar is in the names of string literals.
    return tuple(
        VariableInfo(name, demangle(name), size, constant)
        for name, size, constant in found
        if "$" not in name
    )


def _size(declaration: bytes, dimensions: bytes) -> int | None:
    """Return the bytes of ``.align 4 .b8 name[16]``; None if it does not say."""
    element = _ELEMENT.search(declaration)
    sizes = [int(one) if one else 0 for one in re.findall(rb"\[[ \t]*(\d*)[ \t]*\]", dimensions)]
    # An extern array has no size; its definition does.
    if element is None or 0 in sizes:
        return None
    return int(element[2]) // 8 * int(element[1] or b"1") * math.prod(sizes)
