"""The queries of a scan to the disk, and whether they would still have the same answers."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._core import look_at
from culaunch._includes.files import Identity, identity, is_old, known_digest, settled_identity

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Footprint:
    """Files that were read and files that were not there."""

    found: tuple[Found, ...] = ()
    lacking: tuple[Lacking, ...] = ()
    absent: tuple[str, ...] = ()
    """Names that exist but are not readable files: a directory, a dangling link."""

    @classmethod
    def of(cls, paths: Iterable[str]) -> Footprint:
        """Record the state of files, including missing ones."""
        return cls.from_json(look_at(tuple(paths)))

    def renewed(self) -> Footprint | None:
        """Return the same footprint with present identities, or None if some files differ.

        A file is unchanged if its identity or its contents are the same. Nothing has appeared in a
        directory whose times are the same: they change with each name in it.
        """
        now = time.time_ns()
        found = self._unchanged_files(now)
        if found is None:
            return None
        lacking = []
        for one in self.lacking:
            settled = _directory(one.path, now)
            changed = settled is None or settled != one.identity
            # A directory that changed may have got any file; the names that matter are looked for.
            if changed and not _still_lacks(one, now):
                return None
            lacking.append(one if settled == one.identity else one._replace(identity=settled))
        # These have no directory whose times would tell.
        if any(os.path.isfile(path) for path in self.absent):
            return None
        same = found == self.found and tuple(lacking) == self.lacking
        return self if same else replace(self, found=found, lacking=tuple(lacking))

    def _unchanged_files(self, now: int) -> tuple[Found, ...] | None:
        found = []
        first: dict[tuple[int, int], int] = {}
        for index, one in enumerate(self.found):
            try:
                status = os.stat(one.path)
            except OSError:
                return None
            # Two paths that led to one file must still do so: `#pragma once` reads this file once.
            if first.setdefault((status.st_dev, status.st_ino), index) != one.first:
                return None
            # A different time does not prove a change, because a file may be copied or checked out
            # again. Compare its contents.
            if one.identity is None or identity(status) != one.identity:
                if known_digest(one.path, status, now) != one.digest:
                    return None
                found.append(one._replace(identity=settled_identity(status, now)))
            else:
                found.append(one)
        return tuple(found)

    def as_json(self) -> list[Any]:
        """Return it as JSON can hold it."""
        return [self.found, self.lacking, self.absent]

    @classmethod
    def from_json(cls, value: Any) -> Footprint:
        """Make it from the result of :meth:`as_json`.

        Raises
        ------
        ValueError, TypeError
            If it is something else.
        """
        found, lacking, absent = value
        return cls(
            tuple(Found(a, b, int(c), _as_identity(d)) for a, b, c, d in found),
            tuple(Lacking(a, _as_identity(b), tuple(c)) for a, b, c in lacking),
            tuple(absent),
        )


class Found(NamedTuple):
    """A file that was read."""

    path: str
    digest: str
    first: int
    """The index of the first path that leads to this very file: for ``#pragma once``."""
    identity: Identity | None
    """None when the file was changed too shortly before to tell by it."""


class Lacking(NamedTuple):
    """A directory, and names that were not in it."""

    path: str
    identity: Identity | None
    names: tuple[str, ...]


def joined(parts: Iterable[Footprint], leave_out: str | None = None) -> Footprint:
    """Combine footprints.

    Parameters
    ----------
    parts : iterable of Footprint
        The footprints to combine.
    leave_out : str, optional
        A directory whose files do not count.
    """
    inside = None if leave_out is None else os.path.join(leave_out, "")
    found: dict[str, Found] = {}
    names: dict[str, dict[str, None]] = {}
    identities: dict[str, set[Identity | None]] = {}
    absent: dict[str, None] = {}
    for part in parts:
        found.update({one.path: one for one in part.found})
        for lacking in part.lacking:
            names.setdefault(lacking.path, {}).update(dict.fromkeys(lacking.names))
            identities.setdefault(lacking.path, set()).add(lacking.identity)
        absent.update(dict.fromkeys(part.absent))

    def counts(path: str) -> bool:
        return inside is None or not os.path.join(path, "").startswith(inside)

    first: dict[tuple[int, int], int] = {}
    kept: list[Found] = []
    for one in found.values():
        if counts(one.path):
            with contextlib.suppress(OSError):  # it is gone: the next look notices
                status = os.stat(one.path)
                index = first.setdefault((status.st_dev, status.st_ino), len(kept))
                one = one._replace(first=index)  # noqa: PLW2901
            kept.append(one)
    lacked = [
        # Times that differ between two looks tell of neither.
        Lacking(path, next(iter(them)) if len(them) == 1 else None, tuple(names[path]))
        for path, them in identities.items()
        if counts(path)
    ]
    return Footprint(tuple(kept), tuple(lacked), tuple(filter(counts, absent)))


def _directory(path: str, now: int) -> Identity | None:
    try:
        return settled_identity(os.stat(path or "."), now)
    except OSError:
        return None


def _still_lacks(one: Lacking, now: int) -> bool:
    """Check that the names are still missing, once in a process for each state of a directory."""
    try:
        status = os.stat(one.path or ".")
    except OSError:
        return True  # the directory is gone, and every name with it
    key = identity(status), one.names
    if key in _seen and is_old(status, now):
        return True
    if any(os.path.lexists(os.path.join(one.path, name)) for name in one.names):
        return False
    if is_old(status, now):
        if len(_seen) >= _MOST_SEEN:
            _seen.clear()
        _seen.add(key)
    return True


_MOST_SEEN = 1 << 10
_seen: set[tuple[Identity, tuple[str, ...]]] = set()


def _as_identity(value: Any) -> Identity | None:
    if value is None:
        return None
    device, inode, size, modified, changed = value
    return device, inode, size, modified, changed
