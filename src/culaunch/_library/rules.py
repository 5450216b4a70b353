"""What docs/library_format.md demands of a file: names, limits, and the manifest's head."""

from __future__ import annotations

import re
from typing import Any

from culaunch._errors import ImageError

FORMAT = "culaunch-library"
VERSION = 4
MANIFEST = "manifest.json"

MAX_FILE = 4 * 2**30 - 1  # no zip64
MAX_MANIFEST = 64 * 2**20
MAX_MEMBER = 2**30
MAX_MEMBERS = 60_000

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_name(name: object) -> bool:
    """Whether a member may have this name: a relative path without dots to climb by."""
    return isinstance(name, str) and len(name) <= 200 and _NAME.fullmatch(name) is not None


def check_manifest(manifest: Any, source: str) -> dict[str, Any]:
    """Check what every library's manifest has; unknown entries are allowed.

    Raises
    ------
    ImageError
        Naming the entry that is wrong.
    """
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ImageError(
            f"the manifest must be a JSON object with the format {FORMAT}", source=source
        )
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise ImageError(
            f"the version in the manifest must be an int from 1 on (got {version!r:.60})",
            source=source,
        )
    if version > VERSION:
        raise ImageError(
            f"the library has format version {version}, but this culaunch reads versions up to "
            f"{VERSION}: update culaunch",
            source=source,
        )
    members = manifest.get("members")
    if not isinstance(members, dict) or not members:
        raise ImageError("members in the manifest must be a non-empty object", source=source)
    for name, entry in members.items():
        good = (
            is_name(name)
            and name != MANIFEST
            and isinstance(entry, dict)
            # True is an int to `isinstance`.
            and type(entry.get("size")) is int
            and 0 <= entry["size"] <= MAX_MEMBER
            and isinstance(entry.get("sha256"), str)
            and _SHA256.fullmatch(entry["sha256"]) is not None
        )
        if not good:
            raise ImageError(
                f"the manifest's entry of member {name!r:.80} is invalid", source=source
            )
    functions = manifest.get("functions")
    if not isinstance(functions, list) or not all(
        isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and one["name"].isprintable()
        and isinstance(one.get("kind"), str)
        for one in functions
    ):
        raise ImageError(
            "functions in the manifest must be a list of objects with a name and a kind",
            source=source,
        )
    return manifest
