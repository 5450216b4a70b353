"""PTX: the header, and the entries with their parameters and limits.

This parses only the parts that an inspection shows. It searches the text for ``.entry``, and reads
each entry up to its body. Bodies are most of a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culaunch._image.info import KernelInfo, ParameterInfo
from culaunch._image.ptx_params import parameter_block
from culaunch._image.ptx_tokens import Tokens, entry_offsets

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator

    from culaunch._image.budget import Budget
    from culaunch._image.reader import Reader

_COMMENT_SIZE = 2048
_HEADER_TOKENS = 8
_TARGET = re.compile(r"sm_(\d{1,4}[af]?)", re.ASCII)
_RELEASE = re.compile(rb"^//[^\n]*\brelease (\d{1,3}\.\d{1,3}),", re.MULTILINE)
_DIMS = (".maxntid", ".reqntid", ".reqnctapercluster")


class Ptx:
    """One PTX text.

    Parameters
    ----------
    text : bytes or mmap
        The text; trailing zeros are allowed.
    reader : Reader
        The same bytes, for messages.
    """

    def __init__(self, text: bytes | mmap.mmap, reader: Reader) -> None:
        self._text = text
        self._reader = reader

    def arch(self) -> str:
        """Return the virtual architecture: ``"compute_90a"``."""
        tokens = Tokens(self._text, 0, self._reader)
        for _ in range(_HEADER_TOKENS):
            if tokens.at_end:
                break
            if tokens.accept(".target") and (found := _TARGET.fullmatch(tokens.next())):
                return f"compute_{found[1]}"
            tokens.next()
        raise tokens.error("is PTX without `.target sm_NN` after its `.version`")

    def toolkit(self) -> str | None:
        """Return the toolkit, which compilers write into a comment at the top."""
        found = _RELEASE.search(self._text[:_COMMENT_SIZE])
        return found[1].decode() if found else None

    def kernels(self, budget: Budget) -> tuple[KernelInfo, ...]:
        """Parse every entry that is defined here, in the order of the text."""
        toolkit = self.toolkit()
        seen: set[str] = set()
        kernels = []
        for tokens, name in self._entries():
            if name in seen:
                raise tokens.error(f"is corrupt: kernel {name!r} appears twice")
            found = self._kernel(tokens, name, budget, toolkit)
            if found is not None:
                seen.add(name)
                kernels.append(found)
        return tuple(kernels)

    def params(self, kernel: str, budget: Budget) -> tuple[ParameterInfo, ...] | None:
        """Return one kernel's parameters, or None if this PTX does not define it."""
        for tokens, name in self._entries():
            if name == kernel:
                return parameter_block(tokens, budget)
        return None

    def _entries(self) -> Iterator[tuple[Tokens, str]]:
        # From each `.entry` on, its tokens are read as far as its body; the next one is searched
        # for again.
        for offset in entry_offsets(self._text):
            tokens = Tokens(self._text, offset, self._reader)
            tokens.next()
            yield tokens, tokens.identifier("a kernel's name")

    def _kernel(
        self, tokens: Tokens, name: str, budget: Budget, toolkit: str | None
    ) -> KernelInfo | None:
        budget.add_kernel(name, self._reader)
        demangled, types = budget.spell(name)
        params = parameter_block(tokens, budget, types)
        dims: dict[str, tuple[int, int, int]] = {}
        rank: int | None = None
        while (word := tokens.next()) != "{":
            if word == ";":
                return None  # a declaration: the kernel is defined elsewhere
            if word in _DIMS:
                dims[word] = tokens.dims(word)
            elif word == ".maxclusterrank":
                rank = tokens.number(word)
        return KernelInfo(
            name=name,
            demangled=demangled,
            parameters=params,
            max_threads=dims.get(".maxntid"),
            required_threads=dims.get(".reqntid"),
            cluster=dims.get(".reqnctapercluster"),
            max_cluster_rank=rank,
            toolkit=toolkit,
        )
