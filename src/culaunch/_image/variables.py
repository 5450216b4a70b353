"""The ``__device__`` and ``__constant__`` variables of an image, by their names in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._base.elf import SHT_SYMTAB, SYMBOL
from culaunch._image import fatbin
from culaunch._image.budget import Budget
from culaunch._image.elf import Elf
from culaunch._image.files import describe
from culaunch._image.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from culaunch._image.image import Image

_OBJECTS = (1, 13)  # STT_OBJECT in finished images, CUDA's own kind in relocatable ones
# Where variables are; other banks of constants are the compiler's, and kernels' parameters.
_PREFIXES = (b".nv.global", b".nv.constant3")
_DECLARATION = re.compile(
    rb"^[ \t]*(?:\.(?:visible|weak|common)[ \t]+)?\.(?:global|const)\b([^;={]*)", re.MULTILINE
)
_DECLARED = re.compile(rb"([\w$]+)[ \t]*(?:\[[^\]]*\][ \t]*)*\Z")


def image_variables(image: Image) -> tuple[str, ...]:
    """Return the names that the driver finds variables by, without the compiler's own.

    Parameters
    ----------
    image : Image
        A fatbin holds the same variables for every architecture.

    Raises
    ------
    ImageError
        If the image cannot be read.
    """
    reader = Reader(memoryview(image.data), describe(image.data, image.path))
    names: Iterable[str]
    if image.format == "cubin":
        names = _of_cubin(reader)
    elif image.format == "ptx":
        names = _of_ptx(image.data)
    else:
        budget = Budget(len(image.data))
        names = (
            name
            for entry in fatbin.entries(reader)
            if entry.kind in (fatbin.CUBIN, fatbin.PTX)
            for name in _of_entry(entry, budget)
        )
    # A dollar is in the names of string literals.
    return tuple(dict.fromkeys(name for name in names if "$" not in name))


def _of_entry(entry: fatbin.Entry, budget: Budget) -> Iterator[str]:
    opened = entry.open(budget)
    return _of_cubin(opened) if entry.kind == fatbin.CUBIN else _of_ptx(opened.data())


def _of_cubin(reader: Reader) -> Iterator[str]:
    elf = Elf(reader)
    homes = {
        section.number
        for section in elf.sections()
        if any(elf.is_named(section, prefix) for prefix in _PREFIXES)
    }
    for section in elf.sections():
        if section.type != SHT_SYMTAB:
            continue
        names = elf.contents(elf.section(section.link))
        view = elf.contents(section).view
        whole = len(view) - len(view) % SYMBOL.size
        for offset, info, _, index, _, _ in SYMBOL.iter_unpack(view[:whole]):
            if info & 15 in _OBJECTS and index in homes:
                yield names.name(offset, "the name of a variable")


def _of_ptx(text: bytes) -> Iterator[str]:
    for declaration in _DECLARATION.finditer(text):
        found = _DECLARED.search(declaration[1].strip())
        if found is not None:
            yield found[1].decode()
