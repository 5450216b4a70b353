"""The key of what a build makes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def key_of(parts: Iterable[str]) -> str:
    """Return a hash that two different lists of parts do not share."""
    digest = hashlib.sha256()
    for part in parts:
        # With their lengths: two different lists of parts never give the same bytes.
        data = part.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()
