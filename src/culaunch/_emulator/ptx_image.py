"""The contents of a PTX module."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from culaunch._base.source_texts import source_lines
from culaunch._base.values import counted
from culaunch._emulator.kernel_variables import KernelVariables
from culaunch._emulator.ptx import parse_module
from culaunch._errors import ImageError

if TYPE_CHECKING:
    from culaunch._emulator.ptx.syntax import Function, Variable

# ptxas's limit (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
_MAX_STATIC_SHARED = 48 * 1024
_MOST_THREADS = 1024  # the largest block, on every device
_MAX_LOCAL = 512 * 1024


class PtxImage:
    """PTX text, parsed.

    Parameters
    ----------
    text : str or bytes
        The PTX.

    Raises
    ------
    ImageError
        If it is not PTX; the message has the line.
    """

    def __init__(self, text: str | bytes) -> None:
        if isinstance(text, bytes):
            # cuLibraryLoadData takes C strings, and compilers write the zero with them.
            text = text.rstrip(b"\0").decode("utf-8", "replace")
        self.syntax, self.tokens = parse_module(text)
        self._sources: dict[str, list[str]] = {}
        # The variables with an address: .global and .const ones.
        self.globals: dict[str, Variable] = {
            name: variable
            for name, variable in self.syntax.variables.items()
            if variable.space in ("global", "const")
        }
        self._kernels = {
            function.name: self._describe(function)
            for function in self.syntax.functions.values()
            if function.is_kernel
        }

    @property
    def target(self) -> str:
        """The architecture it was compiled for, such as ``"sm_80"``."""
        return self.syntax.target

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels."""
        return tuple(self._kernels)

    def source_text(self, file: str, line: int) -> str:
        """Return a line of the source, if this was compiled from text in this process."""
        if file not in self._sources:
            self._sources[file] = source_lines("\n".join(self.tokens.source), file)
        lines = self._sources[file]
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def kernel(self, name: str) -> PtxKernel:
        """Describe a kernel; raise KeyError if there is no kernel with that name."""
        return self._kernels[name]

    def _describe(self, function: Function) -> PtxKernel:
        variables = KernelVariables(self.syntax, function)
        for what, size, most in (
            ("static shared memory", variables.static_bytes, _MAX_STATIC_SHARED),
            ("local memory for each thread", variables.local_bytes, _MAX_LOCAL),
        ):
            if size > most:
                raise ImageError(
                    f"the kernel {function.name!r} has {counted(size, 'byte')} of {what}, but at "
                    f"most {most} "
                    "are available",
                    source=f"PTX line {function.line}",
                )
        directives = function.directives
        threads = _MOST_THREADS
        required = directives.get("reqntid")
        # .reqntid is the exact block. .maxntid gives upper limits of its extents, and only their
        # product counts. No device allows more.
        limit = required or directives.get("maxntid")
        if limit:
            threads = min(threads, int(np.prod(limit, dtype=np.int64)))
        return PtxKernel(
            function.name,
            tuple(Parameter(p.offset, p.size, p.align, p.name) for p in function.params),
            threads,
            None if required is None else _three(required),
            variables.static_bytes,
            variables.local_bytes,
            _three(directives["reqnctapercluster"]) if "reqnctapercluster" in directives else None,
        )


@dataclass(frozen=True)
class Parameter:
    """Where a kernel's parameter lies in its parameter bytes."""

    offset: int
    size: int
    align: int
    name: str = ""


@dataclass(frozen=True)
class PtxKernel:
    """A kernel as its declaration describes it."""

    name: str
    params: tuple[Parameter, ...]
    max_threads: int
    """The maximum number of threads in a block."""
    required_threads: tuple[int, int, int] | None
    """The block that the kernel was compiled for, if it says so."""
    static_shared: int
    """Bytes of shared memory that every block has."""
    local_bytes: int
    cluster: tuple[int, int, int] | None

    @property
    def param_bytes(self) -> int:
        """The size of the parameter bytes."""
        return max((param.offset + param.size for param in self.params), default=0)


def _three(numbers: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*numbers, 1, 1, 1)[:3]
    return x, y, z
