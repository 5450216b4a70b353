"""Output files, written the way compilers do.

An existing output that is not a regular file (a device, a FIFO, a terminal) is written through. A
symbolic link is followed. A regular file appears whole or not at all. It keeps its mode and owner,
and is refused if it is read-only. The umask decides the mode of a new file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import zlib
from itertools import count
from typing import TYPE_CHECKING, BinaryIO, cast

from culaunch._base.alive import claim, take_dead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST_LINKS = 40  # the kernel's limit
# A file that can be written, but not replaced: its directory is read-only, or the file is itself a
# mount, as in a container.
_NO_REPLACING = {errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV}
# The errors that write() reports without the name of the file.
_NAMELESS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE}


@contextlib.contextmanager
def open_output(path: str, *, durable: bool = False) -> Iterator[BinaryIO]:
    """Open an output for writing and reading back. It is published if the block succeeds.

    Until then, and after an exception, an existing file with that name is unchanged.

    Parameters
    ----------
    path : str
        The output, as the user named it: an error names it so, and no temporary file.
    durable : bool, default False
        Whether the bytes are on the disk before the name is. A compiler's output can be made
        again, and a build system would pay for it every time.

    Raises
    ------
    OSError
        If the output is a directory, is read-only, has no directory to be in, or cannot be
        written.
    """
    try:
        found = _existing(path)
        # A rename cannot replace a device or a FIFO, whose reader needs the bytes.
        if found is None or stat.S_ISREG(found.st_mode):
            target = _follow(path)
            if target is not None:
                with _replaced(path, target, found, durable) as file:
                    yield file
                return
        with _scratch() as file:
            yield file
            _write_through(path, file)
    except OSError as error:
        named = _named(error, path)
        if named is error:
            raise
        raise named from error


def write_output(path: str, data: bytes, *, durable: bool = False) -> None:
    """Write an output whole, under the rules of :func:`open_output`."""
    with open_output(path, durable=durable) as file:
        file.write(data)


def write_outputs(outputs: Mapping[str, bytes]) -> None:
    """Write outputs that belong together: if one cannot be written, all stay as they were."""
    with contextlib.ExitStack() as stack:
        for path, data in outputs.items():
            file = stack.enter_context(open_output(path))
            # At the end of the block, all files are written to disk before the first one gets its
            # name. A failure here would name the last of them.
            try:
                file.write(data)
                _settle(file)
            except OSError as error:
                raise _named(error, path) from None


def _named(error: OSError, path: str) -> OSError:
    """Return an error that says which file was full, or too large."""
    if error.filename is None and error.errno in _NAMELESS:
        return OSError(error.errno, error.strerror, path)
    return error


def _existing(path: str) -> os.stat_result | None:
    """Return the facts about an existing output after checking that it may be written."""
    directory = os.path.dirname(path) or "."
    try:
        found = os.stat(path)
    except FileNotFoundError:
        # A link to nothing may still be written through, as any compiler does.
        if not os.path.isdir(directory):
            raise FileNotFoundError(
                errno.ENOENT,
                "the directory of the output does not exist: create it first",
                directory,
            ) from None
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "the output must be a file, not a directory", path)
    if stat.S_ISREG(found.st_mode):
        # Renaming would not ask whether the file itself may be written.
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
    return found


def _follow(path: str) -> str | None:
    """Return the target of links, or None for a file that only a descriptor reaches."""
    for _ in range(_MOST_LINKS):
        directory = os.path.realpath(os.path.dirname(path) or ".")
        path = os.path.join(directory, os.path.basename(path))
        if directory.startswith("/proc/"):  # /dev/stdout leads there
            return None
        if not os.path.islink(path):
            return path
        path = os.path.join(directory, os.readlink(path))
    return None  # The system refuses to open as many links.


@contextlib.contextmanager
def _replaced(
    path: str, target: str, found: os.stat_result | None, durable: bool
) -> Iterator[BinaryIO]:
    """Write to a file next to a regular one, then rename it."""
    try:
        temporary, handle = _beside(target)
    except OSError as error:
        if found is None or error.errno not in _NO_REPLACING:
            raise OSError(error.errno, error.strerror, path) from None
        with _scratch() as file:
            yield file
            _write_through(target, file)
        return
    with open(handle, "w+b") as file:
        is_placed = False
        try:
            yield file
            _settle(file)
            if durable:
                os.fsync(handle)
            is_placed = _take_place(path, handle, temporary, target, found)
            if not is_placed:
                _write_through(target, file)
        finally:
            # Once it is renamed, the name is free for the next writer.
            if not is_placed:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
    if durable:
        sync_directory(os.path.dirname(target))


def _beside(target: str) -> tuple[str, int]:
    """Make and lock a file next to an output; return its path and descriptor.

    Its name contains the output's name: the next writer of that output removes the file of a killed
    writer.
    """
    # Do not use tempfile: its files are private, and reading the umask requires changing it.
    folder, name = os.path.split(target)
    stem = os.path.join(folder, f".culaunch-{zlib.crc32(os.fsencode(name)):08x}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    for number in count():
        path = f"{stem}-{number}.tmp"
        try:
            handle = os.open(path, flags, 0o666)
        except FileExistsError:
            dead = take_dead(path)
            if dead is not None:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                os.close(dead)
            continue
        if claim(path, handle):
            return path, handle
        os.close(handle)
    raise AssertionError("numbers do not end")


def _take_place(
    path: str, handle: int, temporary: str, target: str, found: os.stat_result | None
) -> bool:
    """Rename the new file to the old one's name; return False if that would change its owner."""
    if found is not None:
        ours = os.fstat(handle)
        if (ours.st_uid, ours.st_gid) != (found.st_uid, found.st_gid):
            try:
                os.fchown(handle, found.st_uid, found.st_gid)
            except OSError:
                return False
        # Without setuid and the like, which do not survive a write to a file either.
        os.fchmod(handle, stat.S_IMODE(found.st_mode) & 0o777)
    try:
        os.rename(temporary, target)
    except OSError as error:
        if found is not None and error.errno in _NO_REPLACING:
            return False
        raise OSError(error.errno, error.strerror, path) from None
    return True


def _settle(file: BinaryIO) -> None:
    """Hand all over to the disk, which may refuse it, before anything has the file's name."""
    file.flush()
    # A network file system says at a close that it is full, or that a quota is.
    os.close(os.dup(file.fileno()))


def _scratch() -> BinaryIO:
    import tempfile  # which few outputs need

    return cast("BinaryIO", tempfile.TemporaryFile(prefix="culaunch-"))


def _write_through(path: str, file: BinaryIO) -> None:
    import shutil

    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    # Not emptied first: if the disk has no room, the old content is to stay.
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    with open(os.open(path, flags, 0o666), "wb") as output:
        is_regular = stat.S_ISREG(os.fstat(output.fileno()).st_mode)
        if is_regular:
            _make_room(output.fileno(), size)
        shutil.copyfileobj(file, output, 1 << 20)
        output.flush()
        if is_regular:
            output.truncate(size)


def _make_room(descriptor: int, size: int) -> None:
    """Reserve the room on the disk, so a full disk raises before the old content changes."""
    before = os.fstat(descriptor).st_size
    if size <= before or not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, before, size - before)
    except OSError:
        os.ftruncate(descriptor, before)
        raise


def sync_directory(directory: str | int) -> None:
    """Bring a rename to the disk; a power failure could otherwise take it back."""
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        descriptor = directory if isinstance(directory, int) else os.open(directory, flags)
        try:
            os.fsync(descriptor)
        finally:
            if descriptor != directory:
                os.close(descriptor)
