"""The members of a library: the position of each in the file, and its expected digest."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._errors import ImageError
from culaunch._image.mapped import MappedImage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._image import Image
    from culaunch._library.mapped_file import BytesFile, MappedFile

# The header before a member in a zip: the signature, and at the end the lengths of name and extra.
_LOCAL = struct.Struct("<4s22xHH")


class Member(NamedTuple):
    """One member."""

    header: int
    """Where its own header is in the file."""
    size: int
    digest: bytes


class Members:
    """Members by name; they are checked and mapped on demand.

    This part of a library stays after reading; the manifest need not.

    Parameters
    ----------
    file : MappedFile or BytesFile
    source : str
        The file's name in messages.
    table : dict of str to Member
    """

    def __init__(self, file: MappedFile | BytesFile, source: str, table: dict[str, Member]) -> None:
        self.source = source
        self._file = file
        self._table = table

    def __call__(self, name: str) -> bytes:
        """Return the bytes of a member."""
        return bytes(self.view(name))

    def image(self, name: str, **facts: Any) -> Image:
        """Return a member as an image, whose bytes stay in the file.

        Parameters
        ----------
        name : str
        **facts
            The image's ``names`` and ``signatures``, if the library says them.

        Raises
        ------
        ImageError
            If there is no such member, its bytes are not what the manifest says, or no image.
        """
        data = self.view(name)
        offset = self._start(name, self._table[name])
        return MappedImage.of(data, offset, f"{self.source}:{name}", **facts)

    def view(self, name: str) -> memoryview:
        """Return the bytes of a member where they are in the file, checked.

        Raise ImageError if there is no such member, or its bytes are not what the manifest says.
        """
        member = self._table.get(name)
        if member is None:
            raise ImageError(f"member {name!r:.80} does not exist", source=self.source)
        try:
            data = self._data(name, member)
        except (OSError, struct.error, UnicodeEncodeError) as error:
            raise ImageError(f"member {name} is damaged: {error}", source=self.source) from None
        if hashlib.sha256(data).digest() != member.digest:
            raise ImageError(
                f"member {name} is damaged: its SHA-256 differs from the manifest's",
                source=self.source,
            )
        return data

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def close(self) -> None:
        """Close the file; members cannot be read any more."""
        self._file.close()

    def _data(self, name: str, member: Member) -> memoryview:
        return self._file.view(self._start(name, member), member.size)

    def _start(self, name: str, member: Member) -> int:
        """Return the offset of a member's bytes, after its own header."""
        head = self._file.view(member.header, _LOCAL.size)
        signature, name_size, extra_size = _LOCAL.unpack(head)
        found = self._file.view(member.header + _LOCAL.size, name_size)
        # The place came from the archive's directory, which is at the end of the file; the header
        # before the member has to agree with it.
        if signature != b"PK\3\4" or bytes(found) != name.encode("ascii"):
            raise OSError("the file has the header of another member at its place")
        start: int = member.header + _LOCAL.size + name_size + extra_size
        return start
