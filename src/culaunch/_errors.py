"""Every exception and warning that culaunch raises.

A mistake in a call is a built-in :class:`TypeError`, :class:`ValueError` or :class:`OverflowError`,
or one of the classes here that derive from them. An error of the driver is a :class:`DriverError`.
A defect of culaunch itself is an :class:`InternalError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CacheWarning",
    "CompileError",
    "CulaunchError",
    "DriverError",
    "DriverNotFoundError",
    "ImageError",
    "InternalError",
    "KernelNotFoundError",
    "LaunchError",
    "MissingDependencyError",
]


class CulaunchError(Exception):
    """Base of every exception that is culaunch's own."""


class ImageError(CulaunchError, ValueError):
    """An image that is truncated, malformed, or not an image at all.

    Parameters
    ----------
    message : str
        What is wrong.
    source : str, optional
        The file's path, or a description such as ``"<120 bytes>"``.
    offset : int, optional
        The byte offset in that file at which it was found.
    """

    def __init__(
        self, message: str, *, source: str | None = None, offset: int | None = None
    ) -> None:
        where = "" if offset is None else f" (at offset {offset:#x})"
        super().__init__(f"{source}: {message}{where}" if source else f"{message}{where}")
        self.source = source
        self.offset = offset


class CompileError(CulaunchError):
    """A source that a compiler refused, or options that it does not know.

    Parameters
    ----------
    message : str
        What is wrong, with the place in the source.
    log : str, optional
        The compiler's whole log.
    """

    def __init__(self, message: str, *, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class KernelNotFoundError(CulaunchError, KeyError):
    """The module does not have this kernel or variable; the message lists those it has.

    Parameters
    ----------
    message : str
        The requested name, and the existing names.
    log : str, optional
        The whole list, if the message contains only a part of it.
    """

    def __init__(self, message: str = "", *, log: str = "") -> None:
        super().__init__(message)
        self.log = log

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; this message is made for reading.
        return str(self.args[0]) if self.args else ""


class DriverError(CulaunchError, RuntimeError):
    """A failure that the driver reported.

    Parameters
    ----------
    message : str
        The failed operation, the driver's name and text of the error, and an explanation.
    code : int
        The driver's ``CUresult``.
    name : str
        Its name, such as ``"CUDA_ERROR_INVALID_VALUE"``.

    Attributes
    ----------
    report : object or None
        The emulator's record of the error, if a kernel on the emulator caused it: its `kind`,
        `message`, `kernel`, `block`, `thread`, `position`, `related` and `notes`.
    """

    def __init__(self, message: str, code: int = 0, name: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name
        self.report = _latest_report(message)


class LaunchError(DriverError, ValueError):
    """A launch that the driver refused because of the call.

    The block is too large for the kernel, a grid dimension is out of range, there is not that
    much shared memory: nothing ran, and the context is still good.
    """


class GridOverflowError(LaunchError, OverflowError):
    """A grid of a Triton kernel that is not a C int, for which Triton raises an OverflowError."""


class DriverNotFoundError(DriverError):
    """No CUDA driver on this machine, or one that is too old."""


class MissingDependencyError(CulaunchError, ImportError):
    """An optional package that this call needs; the message names the pip command."""


class InternalError(CulaunchError):
    """A defect of culaunch: please report it."""


class CacheWarning(UserWarning):
    """A cache entry that was dropped, or a cache or a tuned table that cannot be used."""


# Returns the latest record whose text is in a message. The emulator sets it.
_latest_report: Callable[[str], Any] = lambda _: None  # noqa: E731


def set_report_source(latest: Callable[[str], Any]) -> None:
    """Set the function that finds the emulator's record for the message of an error."""
    global _latest_report  # noqa: PLW0603
    _latest_report = latest


# Tracebacks show the names by which people catch them.
for _name in __all__:
    globals()[_name].__module__ = "culaunch"
