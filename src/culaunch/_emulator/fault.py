"""A kernel's error: a CUDA error code with the place where it happened."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from culaunch._base.cuda import Result
from culaunch._emulator.report import Report

if TYPE_CHECKING:
    from culaunch._emulator.report import Position, Related

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

# The kind of a report that names none. The other codes are refusals.
_KINDS_OF_CODES: dict[int, str] = {
    ILLEGAL_ADDRESS: "out-of-bounds",
    LAUNCH_TIMEOUT: "timeout",
    ASSERT: "assertion",
    HARDWARE_STACK_ERROR: "stack-overflow",
    ILLEGAL_INSTRUCTION: "illegal-instruction",
    LAUNCH_FAILED: "illegal-instruction",
    MISALIGNED_ADDRESS: "misaligned",
    NOT_SUPPORTED: "not-emulated",
}


class Explanation(NamedTuple):
    """The reason why a kernel may not access an address: the kind of report, and its words."""

    kind: str
    text: str
    related: tuple[Related, ...] = ()


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
    kind : str, optional
        The kind of report; by default the one of the code.
    related : list of Related, optional
        Other places that matter, in the report before the notes.
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
    kind: str = ""
    related: list[Related] = field(default_factory=list)

    def copy(self) -> Fault:
        """Make an equal fault without a traceback."""
        return dataclasses.replace(self, notes=list(self.notes), related=list(self.related))

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

    @property
    def report(self) -> Report:
        """The record of the parts that are filled in so far."""
        return Report(
            kind=self.kind or _KINDS_OF_CODES.get(self.code, "refused-launch"),
            message=self.reason,
            kernel=self.kernel,
            block=self.block,
            thread=self.thread,
            position=self.position,
            related=tuple(self.related),
            notes=tuple(self.notes),
        )

    def __str__(self) -> str:
        return str(self.report)
