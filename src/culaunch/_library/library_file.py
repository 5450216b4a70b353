"""Read a library: the manifest at once, each image when it is asked for."""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import zipfile
from typing import Any

from culaunch._base.checks import checked_path
from culaunch._errors import ImageError
from culaunch._library.rules import (
    MANIFEST,
    MAX_FILE,
    MAX_MANIFEST,
    MAX_MEMBERS,
    check_manifest,
    is_name,
)

SUFFIX = ".culib"


class LibraryFile:
    """A library in the format of docs/library_format.md.

    Nothing of it is executed or unpacked to disk. Each member's length and SHA-256 are compared
    with the manifest's when it is read.

    Parameters
    ----------
    source : str, os.PathLike or bytes
        A path, or the file's bytes.

    Attributes
    ----------
    manifest : dict
        Checked as far as the format goes; what its functions mean is their kind's.

    Raises
    ------
    ImageError
        If it is not a library, is damaged, or is of a newer version.
    """

    manifest: dict[str, Any]

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        if isinstance(source, bytes):
            self.source = f"<{len(source)} bytes>"
            size = len(source)
            stream: Any = io.BytesIO(source)
        else:
            self.source = checked_path("source", source)
            stream = _OpenFile(self.source)
            size = stream.seek(0, os.SEEK_END)
        if size > MAX_FILE:
            stream.close()
            raise ImageError(f"a library has at most {MAX_FILE} bytes", source=self.source)
        self._lock = threading.Lock()
        try:
            self._zip = zipfile.ZipFile(stream)
            self._infos = self._directory()
            self.manifest = self._read_manifest()
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            stream.close()
            if isinstance(error, ImageError):
                raise
            raise ImageError(f"this is no library: {error}", source=self.source) from None
        self._check_members()

    def read(self, name: str) -> bytes:
        """Return a member, checked against the manifest.

        Raises
        ------
        ImageError
            If there is no such member, or its bytes are not what the manifest says.
        """
        entry = self.manifest["members"].get(name)
        if entry is None:
            raise ImageError(f"there is no member {name!r:.80}", source=self.source)
        data = self._read(name)
        if len(data) != entry["size"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise ImageError(
                f"member {name} is damaged: its SHA-256 is not the manifest's", source=self.source
            )
        return data

    def close(self) -> None:
        """Close the file; members cannot be read any more."""
        self._zip.close()

    def __repr__(self) -> str:
        names = ", ".join(one["name"] for one in self.manifest["functions"])
        return f"<culaunch library {self.source}: {names}>"

    def _directory(self) -> dict[str, zipfile.ZipInfo]:
        infos = self._zip.infolist()
        if not 0 < len(infos) <= MAX_MEMBERS + 1:  # the manifest is one more
            raise ImageError(f"a library has 1 to {MAX_MEMBERS} members", source=self.source)
        found: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            if not is_name(info.filename) or info.filename in found:
                raise ImageError(
                    f"member name {info.filename!r:.80} is not allowed, or comes twice",
                    source=self.source,
                )
            stored = info.compress_type == zipfile.ZIP_STORED
            if not stored or info.flag_bits & 1 or info.file_size != info.compress_size:
                raise ImageError(
                    f"member {info.filename} is not stored plainly", source=self.source
                )
            found[info.filename] = info
        return found

    def _read_manifest(self) -> dict[str, Any]:
        info = self._infos.get(MANIFEST)
        if info is None:
            raise ImageError(f"there is no {MANIFEST}", source=self.source)
        if info.file_size > MAX_MANIFEST:
            raise ImageError(f"{MANIFEST} has over {MAX_MANIFEST} bytes", source=self.source)
        try:
            manifest = json.loads(self._read(MANIFEST).decode(), parse_constant=_refuse_constant)
        except RecursionError:
            raise ImageError(f"{MANIFEST} is nested too deeply", source=self.source) from None
        return check_manifest(manifest, self.source)

    def _check_members(self) -> None:
        listed = self.manifest["members"]
        if listed.keys() != self._infos.keys() - {MANIFEST}:
            raise ImageError("the members are not those of the manifest", source=self.source)
        for name, entry in listed.items():
            if self._infos[name].file_size != entry["size"]:
                raise ImageError(f"member {name} has another length", source=self.source)

    def _read(self, name: str) -> bytes:
        try:
            with self._lock:
                return self._zip.read(self._infos[name])
        except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError) as error:
            raise ImageError(f"member {name} is damaged: {error}", source=self.source) from None


def _refuse_constant(text: str) -> None:
    """Refuse what Python's reader takes and JSON does not have."""
    raise ValueError(f"{text} is not JSON")


class _OpenFile:
    """A file that stays open for as long as members may be read, and is closed with its reader.

    Whoever replaces the file on disk does not disturb it.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        if base is None:
            base = os.fstat(self._descriptor).st_size
        if base + offset < 0:
            raise OSError("a negative position")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            size = max(0, os.fstat(self._descriptor).st_size - self._position)
        os.lseek(self._descriptor, self._position, os.SEEK_SET)
        parts = []
        while size > 0 and (part := os.read(self._descriptor, size)):
            parts.append(part)
            size -= len(part)
        data = b"".join(parts)
        self._position += len(data)
        return data

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()
