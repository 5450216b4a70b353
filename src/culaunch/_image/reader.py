"""Bounded reads from a buffer: every failure is an ImageError with the file and the offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._errors import ImageError

if TYPE_CHECKING:
    import struct

# Mangled names of template-heavy kernels reach about ten thousand bytes; this is far above.
_MAX_NAME = 1 << 18
_NAME_STEP = 256


class Reader:
    """A window into a file.

    Parameters
    ----------
    view : memoryview
        The bytes; they are not copied.
    source : str
        The file's name, for messages.
    base : int
        The window's offset in the file, for messages.
    """

    __slots__ = ("base", "source", "view")

    def __init__(self, view: memoryview, source: str, base: int = 0) -> None:
        self.view = view
        self.source = source
        self.base = base

    def __len__(self) -> int:
        return len(self.view)

    def error(self, message: str, offset: int = 0) -> ImageError:
        """Make the error for something wrong at an offset in this window."""
        return ImageError(message, source=self.source, offset=self.base + offset)

    def unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        """Unpack integers, after checking that they are all there."""
        if not 0 <= offset <= len(self.view) - layout.size:
            raise self.error(
                f"is truncated: {what} needs {layout.size} bytes, but only "
                f"{max(0, len(self.view) - offset)} are left",
                offset,
            )
        return layout.unpack_from(self.view, offset)

    def window(self, offset: int, size: int, what: str) -> Reader:
        """Return a window inside this one, after checking that it is inside."""
        if offset < 0 or size < 0 or offset + size > len(self.view):
            raise self.error(
                f"is truncated or corrupt: {what} ends at byte {offset + size:#x}, but there are "
                f"only {len(self.view):#x} bytes",
                min(max(offset, 0), len(self.view)),
            )
        return Reader(self.view[offset : offset + size], self.source, self.base + offset)

    def data(self) -> bytes:
        """Return the bytes: without a copy when the window is all of a bytes object."""
        whole = self.view.obj
        if isinstance(whole, bytes) and len(whole) == len(self.view):
            return whole
        return bytes(self.view)

    def name(self, offset: int, what: str) -> str:
        """Return the zero-terminated name at an offset."""
        size = _NAME_STEP
        while offset < len(self.view):
            # Most names are short: a window that grows copies little for them, and a name without
            # an end is given up at a bound.
            text = bytes(self.view[offset : offset + size])
            end = text.find(b"\0")
            if end >= 0:
                return text[:end].decode("utf-8", "backslashreplace")
            if size >= _MAX_NAME or offset + size >= len(self.view):
                break
            size *= 8
        raise self.error(f"is corrupt: {what} does not end", min(offset, len(self.view)))
