"""Read a library: the manifest at once, each image where it is in the file."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_path
from culaunch._errors import ImageError
from culaunch._library.mapped_file import BytesFile, MappedFile, Reader
from culaunch._library.members import Member, Members
from culaunch._library.rules import (
    MANIFEST,
    MAX_FILE,
    MAX_MANIFEST,
    MAX_MEMBERS,
    check_manifest,
    is_name,
)

if TYPE_CHECKING:
    import os

SUFFIX = ".culib"


class LibraryFile:
    """A library in the format of docs/library_format.md.

    Nothing of it is executed or unpacked to disk. A file is mapped for as long as its members are
    wanted: processes that have it share its pages. Each member's length is compared with the
    manifest's at once, and its SHA-256 when it is read.

    Parameters
    ----------
    source : str, os.PathLike or bytes
        A path, or the file's bytes.

    Attributes
    ----------
    manifest : dict
        Checked as far as the format goes; what its functions mean is their kind's.
    members : Members
        They do not need the manifest any more.

    Raises
    ------
    ImageError
        If it is not a library, is damaged, or has a newer version.
    """

    manifest: dict[str, Any]

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        if isinstance(source, bytes):
            self.source = f"<{len(source)} bytes>"
            file: MappedFile | BytesFile = BytesFile(source)
        else:
            self.source = checked_path("source", source)
            file = MappedFile(self.source)
        try:
            if file.size > MAX_FILE:
                raise ImageError(
                    f"a library must have at most {MAX_FILE} bytes", source=self.source
                )
            with zipfile.ZipFile(Reader(file)) as archive:
                self._infos = self._directory(archive)
                self.manifest = self._read_manifest(archive)
            self._check_members()
        except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
            file.close()
            if isinstance(error, ImageError):
                raise
            raise ImageError(f"this is not a valid library: {error}", source=self.source) from None
        # The archive's reader is no longer needed: members are found by their places, and checked
        # by their digests.
        table = {
            name: Member(
                self._infos[name].header_offset, entry["size"], bytes.fromhex(entry["sha256"])
            )
            for name, entry in self.manifest["members"].items()
        }
        self.members = Members(file, self.source, table)
        del self._infos

    def read(self, name: str) -> bytes:
        """Return a member, checked against the manifest.

        Raise ImageError if there is no such member, or its bytes are not what the manifest says.
        """
        return self.members(name)

    def close(self) -> None:
        """Close the file; members cannot be read any more."""
        self.members.close()

    def __repr__(self) -> str:
        names = ", ".join(one["name"] for one in self.manifest["functions"])
        return f"<culaunch library {self.source}: {names}>"

    def _directory(self, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
        infos = archive.infolist()
        if not 0 < len(infos) <= MAX_MEMBERS + 1:  # the manifest is one more
            raise ImageError(f"a library must have 1 to {MAX_MEMBERS} members", source=self.source)
        found: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            if not is_name(info.filename) or info.filename in found:
                raise ImageError(
                    f"member name {info.filename!r:.80} is not allowed, or appears twice",
                    source=self.source,
                )
            stored = info.compress_type == zipfile.ZIP_STORED
            # Only stored members can be mapped in place, and a compressed member could be far
            # larger than the file.
            if not stored or info.flag_bits & 1 or info.file_size != info.compress_size:
                raise ImageError(
                    f"member {info.filename} must be stored without compression or encryption",
                    source=self.source,
                )
            found[info.filename] = info
        return found

    def _read_manifest(self, archive: zipfile.ZipFile) -> dict[str, Any]:
        info = self._infos.get(MANIFEST)
        if info is None:
            raise ImageError(f"{MANIFEST} is missing", source=self.source)
        if info.file_size > MAX_MANIFEST:
            raise ImageError(
                f"{MANIFEST} must have at most {MAX_MANIFEST} bytes", source=self.source
            )
        try:
            manifest = json.loads(
                # JSON has neither NaN nor Infinity, but Python's reader accepts both.
                _read(archive, info, self.source).decode(),
                parse_constant=_refuse_constant,
            )
        except RecursionError:
            raise ImageError(f"{MANIFEST} is nested too deeply", source=self.source) from None
        return check_manifest(manifest, self.source)

    def _check_members(self) -> None:
        listed = self.manifest["members"]
        # Neither more nor less than the manifest says: a member that is not listed has no digest.
        if listed.keys() != self._infos.keys() - {MANIFEST}:
            raise ImageError("the members must be those of the manifest", source=self.source)
        for name, entry in listed.items():
            if self._infos[name].file_size != entry["size"]:
                raise ImageError(
                    f"member {name} must have the length that the manifest gives",
                    source=self.source,
                )


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, source: str) -> bytes:
    try:
        return archive.read(info)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise ImageError(f"member {info.filename} is damaged: {error}", source=source) from None


def _refuse_constant(text: str) -> None:
    """Refuse the constants that Python's reader accepts and JSON does not have."""
    raise ValueError(f"{text} is not valid JSON")
