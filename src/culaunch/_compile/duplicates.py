"""Symbols that two inputs of a link define.

nvJitLink prints "Multiple definition" to the terminal and then reports success, with an image that
mixes both definitions, or crashes. So duplicates are searched for before the link.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._base.elf import (
    SHN_LORESERVE,
    SHN_UNDEF,
    STB_GLOBAL,
    STT_FILE,
    STT_NOTYPE,
    STT_SECTION,
)
from culaunch._errors import CompileError
from culaunch._image.elf import Elf
from culaunch._image.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ENTRY = re.compile(rb"^[ \t]*\.visible[ \t]+\.entry[ \t]+([\w$]+)", re.MULTILINE)


def check_duplicates(inputs: Iterable[tuple[str, str, bytes]]) -> None:
    """Raise if two inputs define the same kernel, function or variable.

    Symbols that the compiler marks as weak (template instances, inline functions) may be defined
    twice.

    Parameters
    ----------
    inputs : iterable of (str, str, bytes)
        The name for messages, the type (``"CUBIN"``, ``"PTX"``) and the bytes of each input. Inputs
        of other types are left to nvJitLink, which refuses duplicates in LTO-IR.

    Raises
    ------
    CompileError
        With the name of the symbol and both inputs.
    """
    # By name, with the input that defines it, so all duplicate definitions are reported at once.
    first: dict[str, str] = {}
    log = []
    for where, kind, data in inputs:
        defined = {"CUBIN": _strong_symbols, "PTX": _entries}.get(kind)
        for name in sorted(set(defined(data))) if defined is not None else ():
            if name in first:
                log.append(f"{name!r} is defined in {first[name]} and in {where}")
            first.setdefault(name, where)
    if log:
        raise CompileError(
            "linking failed: " + "\n".join(log) + "\nRename one, make it static, or put it in a "
            "namespace of its own",
            log="\n".join(log),
        )


def _strong_symbols(data: bytes) -> Iterator[str]:
    elf = Elf(Reader(memoryview(data), f"<{len(data)} bytes>"))
    for symbol in elf.symbols():
        # Neither undefined, nor a reserved number (common, absolute), which is not a section.
        defined = SHN_UNDEF < symbol.section < SHN_LORESERVE
        # CUDA has its own kinds of variables.
        is_thing = symbol.kind not in (STT_NOTYPE, STT_SECTION, STT_FILE)
        if symbol.binding == STB_GLOBAL and is_thing and defined:
            yield symbol.text("the name of a symbol")


def _entries(data: bytes) -> Iterator[str]:
    yield from (name.decode() for name in _ENTRY.findall(data))
