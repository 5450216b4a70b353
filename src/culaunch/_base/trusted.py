"""Directories for code and images, which no other user can write to.

Their contents run, on a GPU or in this process. So a directory and every file in it must belong to
the user or to root, and must not be group- or world-writable. Each check uses the descriptor of the
opened file: a directory that is moved away and replaced is noticed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from culaunch._base.outputs import sync_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

TEMPORARY = ".tmp-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class TrustedDirectory:
    """An open directory that the user and root alone can change.

    Parameters
    ----------
    path : str
        Its name in errors.
    descriptor : int
        The checked directory, which is closed with this object.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._lasts = False

    @classmethod
    def open(cls, path: str, *, make: bool = False) -> TrustedDirectory:
        """Open a directory.

        Parameters
        ----------
        path : str
            The path. A symbolic link there must belong to the user or to root as well.
        make : bool, default False
            Create it, and missing parent directories, with access only for the user.

        Raises
        ------
        OSError
            If it does not exist, is not a directory, or is not private to the user
            (UntrustedError).
        """
        if make:
            make_private(path)
        try:
            return cls._checked(path, os.open(path, _DIRECTORY | os.O_NOFOLLOW))
        except OSError as error:
            if isinstance(error, UntrustedError):
                raise
            link = os.lstat(path)
            if not stat.S_ISLNK(link.st_mode):
                raise
        if not _is_believed(link.st_uid):
            why = f"it is a symbolic link that belongs to user {link.st_uid}, not {os.geteuid()}"
            raise UntrustedError(errno.EPERM, why, path)
        return cls._checked(path, os.open(path, _DIRECTORY))

    def sub(self, name: str, *, make: bool = False) -> TrustedDirectory:
        """Open a directory in this one, under the same rule; a link is not followed."""
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self._descriptor)
        descriptor = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self._descriptor)
        return self._checked(os.path.join(self.path, name), descriptor)

    @classmethod
    def _checked(cls, path: str, descriptor: int) -> TrustedDirectory:
        why_not = why_not_trusted(os.fstat(descriptor))
        if why_not is not None:
            os.close(descriptor)
            raise UntrustedError(errno.EPERM, why_not, path)
        return cls(path, descriptor)

    def read(self, name: str) -> tuple[bytes, os.stat_result] | None:
        """Read a whole file; return None if it is missing, or if others can change it."""
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(name, flags, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or why_not_trusted(status) is not None:
                return None
            parts = []
            # Read until the end, because a signal or a network mount may return less than
            # requested.
            while part := os.read(descriptor, max(status.st_size, 1)):
                parts.append(part)
            return b"".join(parts), status
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def publish(self, name: str, data: bytes) -> None:
        """Put a private file in place, whole or not at all.

        Raise OSError if it could not be written. The error names the file, and nothing is left
        behind.
        """
        try:
            self._publish(name, data)
        except OSError as error:
            # An error of a write has no file name, and the name of a temporary file would not help.
            path = os.path.join(self.path, name)
            raise OSError(error.errno, error.strerror, path) from error

    def _publish(self, name: str, data: bytes) -> None:
        # Next to its final path, so the rename stays within one file system. The name is unique,
        # even for a writer in another container with the same process id.
        temporary = f"{TEMPORARY}{os.getpid()}-{os.urandom(8).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, 0o600, dir_fd=self._descriptor)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                # The contents before the name: after a power failure there would otherwise be a
                # file of the right name with zeros in it.
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            self.remove(temporary)
            raise
        # Without it a power failure may take the rename back; the entry is then merely not there.
        sync_directory(self._descriptor)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the names and facts of the regular files."""
        # To listdir(), -1 is the current directory.
        assert self._descriptor >= 0, "the directory is closed"
        for name in os.listdir(self._descriptor):
            with contextlib.suppress(OSError):
                status = self.status(name)
                if stat.S_ISREG(status.st_mode):
                    yield name, status

    def status(self, name: str) -> os.stat_result:
        """Return the facts of the file with this name."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def touch(self, name: str) -> None:
        """Note that a file was used, if that can be noted."""
        with contextlib.suppress(OSError):
            os.utime(name, dir_fd=self._descriptor, follow_symlinks=False)

    def remove(self, name: str) -> bool:
        """Remove a file; return whether it was there and could be removed."""
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except OSError:
            return False
        return True

    def lasting_path(self, name: str) -> str:
        """Return a path to a file here that stays valid if others change the directories above.

        It is the usual path if only the user can change those. Otherwise it goes through the
        descriptor, which then stays open until the process ends.
        """
        path = os.path.realpath(self.path)
        above = path
        settled = True
        while settled and above != os.path.dirname(above):
            above = os.path.dirname(above)
            settled = _is_settled(os.stat(above))
        here = os.fstat(self._descriptor)
        if (settled and os.path.samestat(os.stat(path), here)) or not os.path.isdir(
            "/proc/self/fd"
        ):
            return os.path.join(path, name)
        self._lasts = True
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def close(self) -> None:
        """Close the descriptor, unless a path needs it."""
        if not self._lasts and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> TrustedDirectory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class UntrustedError(OSError):
    """A directory or a file that others could have put there; ``strerror`` says why."""


def why_not_trusted(found: os.stat_result) -> str | None:
    """Return the reason why a file with these facts is not private to the user, or None."""
    if not _is_believed(found.st_uid):
        return f"it belongs to user {found.st_uid}, not {os.geteuid()}"
    if found.st_mode & _OTHERS_WRITE:
        return (
            f"other users may write to it (mode {stat.S_IMODE(found.st_mode):04o}): run chmod "
            "go-w on it"
        )
    return None


def make_private(path: str) -> None:
    """Make a directory and its missing parents, all private to the user.

    Like ``mkdir -p``, but with any umask: the directory will hold code.
    """
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        above = os.path.dirname(path)
        if above in ("", path) or os.path.isdir(above):  # /proc takes no directories
            raise
        make_private(above)
        make_private(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise NotADirectoryError(errno.ENOTDIR, "it is not a directory", path) from None
    except OSError:
        if not os.path.isdir(path):  # a read-only disk also raises this for an existing folder
            raise


def _is_believed(user: int) -> bool:
    return user == 0 or user == os.geteuid()


def _is_settled(above: os.stat_result) -> bool:
    """Tell whether others can neither rename nor replace our files in a directory."""
    if not _is_believed(above.st_uid):
        return False
    return not above.st_mode & _OTHERS_WRITE or bool(above.st_mode & stat.S_ISVTX)
