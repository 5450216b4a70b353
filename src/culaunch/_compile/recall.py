"""The digest of a source's headers from the last scan, as long as it is still valid.

Following some hundred headers takes a while. The resulting digest for the cache key is stored in
the process and beside the cache's entries, together with all queries of the disk. As long as the
disk gives the same answers, following the headers again would give the same digest.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from culaunch._base.fork_lock import ForkLock
from culaunch._cache.note import Note
from culaunch._core import includes_key
from culaunch._includes.footprint import Footprint

if TYPE_CHECKING:
    from culaunch._cache.cache import Cache
    from culaunch._includes.closure import Includes, Search

_MAX_KNOWN = 256
# If the scan is faster than reading a note of it, write no note.
_FEW_FILES = 4

remembered: OrderedDict[str, tuple[str, Footprint]] = OrderedDict()
_lock = ForkLock()


def recall_key(text_digest: str, path: str, headers_digest: str, search: Search) -> str:
    """Return a key for a source and the directories that are searched for its headers."""
    return includes_key(text_digest, path, headers_digest, search.fields, search.system())


def recall(key: str, store: Cache) -> str | None:
    """Return the digest of the headers if all of them are as they were."""
    with _lock:
        # In the process first; a note on the disk takes a read and a parse.
        known = remembered.get(key)
    if known is None:
        known = _from_note(store.read_note(key))
        if known is None:
            return None
    digest, footprint = known
    now = footprint.renewed()
    if now is None:
        return None
    # The same contents with newer times: the next look is as quick as this one should have been.
    if now is not footprint or key not in remembered:
        _keep(key, digest, now)
    return digest


def remember(key: str, includes: Includes, store: Cache) -> None:
    """Cache the digest of the headers."""
    footprint = includes.footprint
    _keep(key, includes.digest, footprint)
    if len(footprint.found) > _FEW_FILES:
        store.keep_note(key, Note(includes.digest, footprint.as_json()))


def _keep(key: str, digest: str, footprint: Footprint) -> None:
    with _lock:
        remembered[key] = (digest, footprint)
        remembered.move_to_end(key)
        while len(remembered) > _MAX_KNOWN:
            remembered.popitem(last=False)


def _from_note(note: Note | None) -> tuple[str, Footprint] | None:
    if note is None:
        return None
    try:
        return note.result, Footprint.from_json(note.reads)
    except (ValueError, TypeError):
        return None
