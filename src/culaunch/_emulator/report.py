"""The record of a kernel's error, from which its text and other formats are made."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_MOST_SOURCE, _MOST_TEXT = 16 << 20, 200

# The kinds of reports, and what a program with one of them does.
KINDS = {
    "assertion": "An assertion of the kernel failed.",
    "barrier-divergence": "Threads of a block do not reach the same barrier.",
    "beyond-variable": "A thread accesses shared memory outside every variable.",
    "beyond-view": "A thread accesses memory beyond the view that is its argument.",
    "deadlock": "Threads wait for other threads that never come.",
    "division-by-zero": "A thread divides an integer by zero.",
    "illegal-instruction": "A thread executes an invalid instruction, or one in an invalid way.",
    "invalid-free": "A thread frees an address that is not an allocated block of the heap.",
    "invalid-handle": "A thread uses a number that is not the handle of a texture or surface.",
    "leak": "A kernel does not free a block of the heap.",
    "misaligned": "A thread accesses an address that is not a multiple of the access's size.",
    "not-emulated": "The emulator does not support an operation of the kernel.",
    "null-pointer": "A thread accesses memory through a null pointer.",
    "out-of-bounds": "A thread accesses memory outside every array and variable.",
    "overflow": "A signed result does not fit its type.",
    "race": "Two threads access the same memory, one of them writes, and nothing orders them.",
    "read-only-write": "A thread writes to an array that is read-only.",
    "refused-launch": "The driver refuses the launch, and nothing runs.",
    "stack-overflow": "Calls of device functions are nested too deeply.",
    "timeout": "The launch reaches its time limit.",
    "trap": "A thread executes a trap.",
    "uninitialized": "The kernel uses a value that nothing has written.",
    "use-after-free": "A thread accesses a block of the heap after it was freed.",
    "warp-mask": "The mask of a warp instruction does not match the lanes that execute it.",
}


@dataclass(frozen=True)
class Position:
    """A place in PTX, and in the source it was compiled from if line information says."""

    line: int
    """The line of PTX, counted from 1."""
    text: str = ""
    """The text of that line."""
    file: str | None = None
    """The source file, as the compiler was told its name."""
    file_line: int | None = None
    """The line of the source file, counted from 1."""
    file_text: str = ""
    """The text of that line, if the source was compiled from text in this process."""
    inlined: tuple[Inlined, ...] = ()
    """The functions that are inlined there, the innermost first."""

    @property
    def source(self) -> str | None:
        """The source line as ``file:line``, when the PTX has line information."""
        return None if self.file is None else f"{self.file}:{self.file_line}"

    def source_lines(self) -> list[str]:
        """Return the lines of a report on the source, with its text if the file can be read."""
        if self.file is None:
            return []
        lines = [f"  source {_with_text(self.file, self.file_line, self.file_text)}"]
        lines += [
            f"  inlined: {name}, called at {_with_text(file, line, text)}"
            for name, file, line, text in self.inlined
        ]
        return lines

    def __str__(self) -> str:
        where = f"PTX line {self.line}"
        return f"{where} (source {self.source})" if self.source else where


class Inlined(NamedTuple):
    """A function that is inlined at a place, and the line of the call."""

    name: str
    """The function."""
    file: str
    """The file of the call."""
    file_line: int
    """The line of the call."""
    file_text: str = ""
    """The text of that line, if the source was compiled from text in this process."""


class Related(NamedTuple):
    """Another place that matters to a report: the other thread, the earlier access."""

    message: str
    """The place in words."""
    position: Position | None = None
    """The place in the code, None at the end of a function."""


@dataclass(frozen=True)
class Report:
    """An error that the emulator found in a kernel; ``str`` is its text.

    Attributes
    ----------
    kind : str
        The kind of error, such as ``"out-of-bounds"`` or ``"race"``.
    message : str
        The error in words.
    kernel : str or None
        The kernel's name in the PTX.
    block, thread : tuple of int or None
        The indices of the block and the thread.
    position : Position or None
        The place in the code.
    related : tuple of Related
        Other places that matter.
    notes : tuple of str
        Hints.
    """

    kind: str
    message: str
    kernel: str | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    position: Position | None = None
    related: tuple[Related, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        # The driver has one text for an error and no more: everything that helps is in it, line by
        # line.
        parts = [self.message]
        if self.kernel is not None:
            parts.append(f"  kernel {self.kernel}")
        if self.block is not None and self.thread is not None:
            parts.append(f"  block {self.block}, thread {self.thread}")
        if self.position is not None:
            parts.append(f"  PTX line {self.position.line}: {self.position.text}".rstrip(": "))
            parts += self.position.source_lines()
        parts += [f"  {related.message}" for related in self.related]
        # Of many places, such as all threads that wait, the source would be too long.
        if len(self.related) == 1 and self.related[0].position is not None:
            parts += [f"  {line}" for line in self.related[0].position.source_lines()]
        parts += [f"  {note}" for note in self.notes]
        return "\n".join(parts)


def _with_text(name: str, line: int | None, text: str) -> str:
    """Return a place with the text of its line, if that is known, or the file is there."""
    source = f"{name}:{line}"
    try:
        if text:
            return f"{source}: {text[:_MOST_TEXT]}"
        # An image can name any file: a device, or one that is too large for a source.
        if not Path(name).is_file() or Path(name).stat().st_size > _MOST_SOURCE:
            return source
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            text = next(itertools.islice(file, (line or 0) - 1, None), "").strip()
    except (OSError, ValueError):
        return source
    return f"{source}: {text[:_MOST_TEXT]}" if text else source
