"""Write a wheel (PEP 427): the same content gives the same bytes."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date in a zip file
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_NUMBER = r"(0|[1-9][0-9]*)"
# The canonical form of PEP 440.
_VERSION = re.compile(
    rf"([1-9][0-9]*!)?{_NUMBER}(\.{_NUMBER})*((a|b|rc){_NUMBER})?(\.post{_NUMBER})?"
    rf"(\.dev{_NUMBER})?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)


class Metadata(NamedTuple):
    """The metadata of a wheel."""

    name: str
    version: str
    summary: str
    """A one-line description."""
    description: str
    """The description in Markdown."""
    requires: tuple[str, ...]
    """The required distributions in the form of PEP 508."""
    generator: str
    """The program that writes the wheel."""


def is_name(name: str) -> bool:
    """Tell whether a distribution may have this name."""
    return _NAME.fullmatch(name) is not None


def is_version(version: str) -> bool:
    """Tell whether this is a version in its canonical form."""
    return _VERSION.fullmatch(version) is not None


def wheel_name(metadata: Metadata) -> str:
    """Return the name of the file."""
    return f"{_stem(metadata)}-py3-none-any.whl"


def wheel_bytes(metadata: Metadata, files: Mapping[str, bytes]) -> bytes:
    """Make a wheel of files that any Python 3 runs."""
    folder = f"{_stem(metadata)}.dist-info"
    contents = dict(sorted(files.items()))
    contents[f"{folder}/METADATA"] = _metadata(metadata).encode()
    contents[f"{folder}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: {metadata.generator}\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n"
    ).encode()
    return archive(contents, folder)


def archive(contents: dict[str, bytes], folder: str) -> bytes:
    """Make a wheel of all its files except RECORD, which goes into a folder."""
    # Names of modules and members contain no commas and no quotes.
    record = [f"{name},{_digest(data)},{len(data)}" for name, data in contents.items()]
    listed = "\n".join([*record, f"{folder}/RECORD,,", ""]).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as written:
        for name, data in (*contents.items(), (f"{folder}/RECORD", listed)):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            written.writestr(info, data)
    return stream.getvalue()


def _stem(metadata: Metadata) -> str:
    name = re.sub(r"[-_.]+", "_", metadata.name).lower()
    return f"{name}-{metadata.version}"


def _metadata(metadata: Metadata) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {metadata.name}",
        f"Version: {metadata.version}",
        f"Summary: {metadata.summary}",
        "Requires-Python: >=3.10",
        *(f"Requires-Dist: {one}" for one in metadata.requires),
        "Description-Content-Type: text/markdown",
        "",
        metadata.description,
    ]
    return "\n".join(lines)


def _digest(data: bytes) -> str:
    digest = hashlib.sha256(data).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
