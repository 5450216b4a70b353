"""A memory-mapped file, whose pages several processes share."""

from __future__ import annotations

import contextlib
import mmap
import os


class MappedFile:
    """The bytes of a file that stays mapped while any object uses them.

    Replacing the file by another one (a rename) does not disturb it. Truncation in place is noticed
    before the bytes are read, as far as possible. The system ends a process that reads past the
    end.

    Parameters
    ----------
    path : str
        The file's path.

    Raises
    ------
    OSError
        If it cannot be read, or is not a regular file.
    """

    def __init__(self, path: str) -> None:
        self._map: mmap.mmap | None = None
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.size = os.fstat(self._descriptor).st_size
            if self.size:  # else there is nothing to map
                self._map = mmap.mmap(self._descriptor, self.size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            os.close(self._descriptor)
            self._descriptor = -1
            raise error if isinstance(error, OSError) else OSError(str(error)) from None

    def view(self, offset: int, size: int) -> memoryview:
        """Return some of its bytes where they are: nothing is copied.

        Raise OSError if the file has fewer bytes, or has become shorter.
        """
        if self._descriptor < 0:
            raise OSError("the file is closed")
        if offset < 0 or size < 0 or offset + size > self.size:
            raise OSError(f"bytes {offset} to {offset + size} are outside the file")
        # Reading mapped pages past the end of a file raises SIGBUS, which ends the process. The
        # file may still be truncated after this check: to replace a library, rename a new file into
        # its place.
        if os.fstat(self._descriptor).st_size < self.size:
            raise OSError("the file was truncated after it was opened")
        return (
            memoryview(b"") if self._map is None else memoryview(self._map)[offset : offset + size]
        )

    def close(self) -> None:
        """Close it; views that were given are good until they are dropped."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        if self._map is not None:
            # The map stays until the last view is dropped.
            with contextlib.suppress(BufferError):  # there are still readers
                self._map.close()
        self._map = None

    def __del__(self) -> None:
        # Not where opening it failed.
        if hasattr(self, "_descriptor"):
            self.close()


class BytesFile:
    """The same interface for bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._data: bytes | None = data

    def view(self, offset: int, size: int) -> memoryview:
        """Return some of its bytes; raise OSError if there are fewer."""
        if self._data is None:
            raise OSError("the file is closed")
        if offset < 0 or size < 0 or offset + size > self.size:
            raise OSError(f"bytes {offset} to {offset + size} are outside the file")
        return memoryview(self._data)[offset : offset + size]

    def close(self) -> None:
        """Forget the bytes."""
        self._data = None


class Reader:
    """The interface of a file for a reader of archives: a position, and reading from there."""

    def __init__(self, file: MappedFile | BytesFile) -> None:
        self._file = file
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence, self._file.size)
        if base + offset < 0:
            raise OSError("a negative position")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seekable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the bytes from here on, at most so many."""
        left = max(0, self._file.size - self._position)
        size = left if size < 0 else min(size, left)
        data = bytes(self._file.view(self._position, size)) if size else b""
        self._position += size
        return data

    def close(self) -> None:
        """Do nothing: the code that opened the file closes it."""
