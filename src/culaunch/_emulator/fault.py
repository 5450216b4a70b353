"""A kernel's error: a CUDA error code with the place where it happened."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass, field
from pathlib import Path

from culaunch._base.cuda import Result

__all__ = [
    "ASSERT",
    "COOPERATIVE_LAUNCH_TOO_LARGE",
    "HARDWARE_STACK_ERROR",
    "ILLEGAL_ADDRESS",
    "ILLEGAL_INSTRUCTION",
    "INVALID_CLUSTER_SIZE",
    "INVALID_PTX",
    "INVALID_VALUE",
    "LAUNCH_FAILED",
    "LAUNCH_OUT_OF_RESOURCES",
    "LAUNCH_TIMEOUT",
    "MISALIGNED_ADDRESS",
    "NOT_FOUND",
    "NOT_SUPPORTED",
    "Fault",
    "Position",
]

# The errors that an emulated kernel can end with.
INVALID_VALUE = Result.INVALID_VALUE
INVALID_PTX = Result.INVALID_PTX
NOT_FOUND = Result.NOT_FOUND
ILLEGAL_ADDRESS = Result.ILLEGAL_ADDRESS
LAUNCH_OUT_OF_RESOURCES = Result.LAUNCH_OUT_OF_RESOURCES
LAUNCH_TIMEOUT = Result.LAUNCH_TIMEOUT
ASSERT = Result.ASSERT
HARDWARE_STACK_ERROR = Result.HARDWARE_STACK_ERROR
ILLEGAL_INSTRUCTION = Result.ILLEGAL_INSTRUCTION
MISALIGNED_ADDRESS = Result.MISALIGNED_ADDRESS
LAUNCH_FAILED = Result.LAUNCH_FAILED
COOPERATIVE_LAUNCH_TOO_LARGE = Result.COOPERATIVE_LAUNCH_TOO_LARGE
NOT_SUPPORTED = Result.NOT_SUPPORTED
INVALID_CLUSTER_SIZE = Result.INVALID_CLUSTER_SIZE

_MOST_SOURCE, _MOST_TEXT = 16 << 20, 200


# Exceptions are compared by identity, as Python does; a dataclass that compares by value would have
# no hash either, which `traceback` asks for.
@dataclass(eq=False)
class Fault(Exception):  # noqa: N818 - CUDA's word: an error is a result of the driver
    """An error of an emulated launch.

    The raising code does not know all parts (kernel, block, thread, position). Its callers fill
    them in: an instruction knows the lane, the scheduler the position, the launch the kernel.

    Parameters
    ----------
    code : int
        The ``CUresult``.
    reason : str
        The error in words, such as ``"4-byte read of global address 0x10: outside every
        allocation"``.
    lane : int, optional
        The lane of the chunk that caused it.
    distance : int, optional
        For an address outside every allocation, its distance in bytes to the nearest one.
    """

    code: int
    reason: str
    lane: int | None = None
    kernel: str | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    position: Position | None = None
    notes: list[str] = field(default_factory=list)
    distance: int | None = None

    def copy(self) -> Fault:
        """Make an equal fault without a traceback."""
        return dataclasses.replace(self, notes=list(self.notes))

    def later(self) -> Fault:
        """Create the exception for a call after the faulty launch."""
        fault = self.copy()
        fault.reason = f"an earlier launch is to blame, and this call did nothing: {self.reason}"
        return fault

    @property
    def line(self) -> int | None:
        """The line of PTX, counted from 1."""
        return None if self.position is None else self.position.line

    @property
    def source(self) -> str | None:
        """The source line as ``file:line``, when the PTX has line information."""
        return None if self.position is None else self.position.source

    def __str__(self) -> str:
        # The driver has one text for an error and no more: everything that helps is in it, line by
        # line.
        parts = [self.reason]
        if self.kernel is not None:
            parts.append(f"  kernel {self.kernel}")
        if self.block is not None and self.thread is not None:
            parts.append(f"  block {self.block}, thread {self.thread}")
        if self.position is not None:
            parts.append(f"  PTX line {self.position.line}: {self.position.text}".rstrip(": "))
            parts += self.position.source_lines()
        parts += [f"  {note}" for note in self.notes]
        return "\n".join(parts)


@dataclass(frozen=True)
class Position:
    """A place in PTX, and in the source it was compiled from if line information says.

    Parameters
    ----------
    source : str, optional
        The source line as ``file:line``.
    inlined : tuple of (str, str)
        The functions that are inlined there, the innermost first, and the line of each call.
    """

    line: int
    text: str = ""
    source: str | None = None
    inlined: tuple[tuple[str, str], ...] = ()

    def source_lines(self) -> list[str]:
        """Return the lines of a report on the source, with its text if the file can be read."""
        if not self.source:
            return []
        lines = [f"  source {_with_text(self.source)}"]
        lines += [f"  inlined: {name}, called at {_with_text(at)}" for name, at in self.inlined]
        return lines

    def __str__(self) -> str:
        where = f"PTX line {self.line}"
        return f"{where} (source {self.source})" if self.source else where


def _with_text(source: str) -> str:
    """Return a place with the text of its line, if the file is there."""
    name, _, line = source.rpartition(":")
    try:
        # An image can name any file: a device, or one that is too large for a source.
        if not Path(name).is_file() or Path(name).stat().st_size > _MOST_SOURCE:
            return source
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            text = next(itertools.islice(file, int(line) - 1, None), "").strip()
    except (OSError, ValueError):
        return source
    return f"{source}: {text[:_MOST_TEXT]}" if text else source
