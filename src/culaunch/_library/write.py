"""Write a library: the same content gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_path
from culaunch._base.outputs import write_output
from culaunch._library.rules import FORMAT, MANIFEST, check_manifest

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

ALIGNMENT = 64
_HEADER = 30  # bytes before the name of a member
# The numbers that zip programs use only for this: the field's number, its size, the alignment.
_ALIGNED = 0xD935
_EXTRA = struct.Struct("<HHH")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first day that a zip can name


def library_bytes(
    functions: Sequence[Mapping[str, Any]],
    members: Mapping[str, bytes],
    producer: str,
    version: int = 1,
) -> bytes:
    """Make a library.

    Parameters
    ----------
    functions : sequence of mapping
        The manifest's entry of each function; only JSON's types.
    members : mapping of str to bytes
        Images by name.
    producer : str
        The program that made it, such as ``"culaunch 0.1.0"``.
    version : int, default 1
        The format's version: the lowest one that supports the entries.
    """
    manifest = {
        "format": FORMAT,
        "version": version,
        "producer": producer,
        "members": {
            name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in sorted(members.items())
        },
        "functions": list(functions),
    }
    # Do not write an entry that the reader would refuse.
    check_manifest(manifest, "the library to write")
    text = json.dumps(manifest, ensure_ascii=True, allow_nan=False, indent=1)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
        for name, data in [(MANIFEST, text.encode()), *sorted(members.items())]:
            # A fixed time, system and mode, and ordered members, so equal content gives equal
            # bytes.
            info = zipfile.ZipInfo(name, _EPOCH)
            info.extra = _padding(stream.tell() + _HEADER + len(name))
            info.create_system = 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, data)
    return stream.getvalue()


def write_library(
    path: str | os.PathLike[str],
    functions: Sequence[Mapping[str, Any]],
    members: Mapping[str, bytes],
    producer: str,
    version: int = 1,
) -> None:
    """Write a library to a file; readers see either the old one or the whole new one."""
    target = checked_path("path", path)
    data = library_bytes(functions, members, producer, version)
    write_output(target, data, durable=True)


def _padding(start: int) -> bytes:
    """Return an extra field that a member begins aligned after, if it is mapped.

    Parameters
    ----------
    start : int
        Where it would begin without.
    """
    missing = -(start + _EXTRA.size) % ALIGNMENT
    return _EXTRA.pack(_ALIGNED, 2 + missing, ALIGNMENT) + bytes(missing)
