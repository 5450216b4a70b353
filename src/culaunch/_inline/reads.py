"""The files that a build of inline code reads, to notice changed and new ones."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culaunch._includes.closure import Search, follow
from culaunch._includes.footprint import Footprint, joined
from culaunch._includes.host import HostSearch, ask_host, ask_nvcc, named_dirs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class Reads:
    """The files that the units in one directory read."""

    footprint: Footprint = field(default_factory=Footprint)
    is_known: bool = True
    """Whether the list is complete. It is not if the text does not name an include."""

    def with_files(self, files: Iterable[str], search: HostSearch) -> Reads:
        """Add the files that a compiler says it has read.

        Each counts wherever the text names it from; so do the places where the compiler would have
        found another file in its stead, were there one.
        """
        paths = []
        for path in files:
            # A header that appears in an earlier directory would be read instead.
            paths += [path, *_before(path, (*search.quoted_dirs, *search.dirs))]
        return Reads(joined([self.footprint, Footprint.of(paths)]), self.is_known)

    def is_current(self) -> bool:
        """Tell whether a compiler would read the same now as it did."""
        return self.is_known and self.footprint.renewed() is not None

    @property
    def state(self) -> str:
        """A name for the contents that were read, among other contents of the same headers."""
        contents = json.dumps([[one.path, one.digest] for one in self.footprint.found])
        return hashlib.sha256(contents.encode()).hexdigest()

    def as_json(self) -> list[Any]:
        """Return them as JSON can hold them."""
        return self.footprint.as_json()

    @classmethod
    def from_json(cls, value: Any) -> Reads:
        """Make them from the result of ``as_json``; ValueError or TypeError for other values."""
        return cls(Footprint.from_json(value))


def joined_reads(reads: Iterable[Reads]) -> Reads:
    """Return what several units read."""
    every = list(reads)
    footprint = joined([one.footprint for one in every])
    return Reads(footprint, all(one.is_known for one in every))


def unit_reads(unit: str, search: HostSearch, own: str) -> Reads:
    """Follow the headers of a unit.

    Parameters
    ----------
    unit : str
        Its path.
    search : HostSearch
        Where the compiler looks.
    own : str
        The directory of the build, whose files are known by other means.
    """
    with open(unit, "rb") as file:
        text = file.read().decode("utf-8", "surrogateescape")
    found = follow(
        text,
        unit,
        Search(
            dirs=search.dirs,
            quoted_dirs=search.quoted_dirs,
            own=search.own,
            working=own,
            forced=search.forced,
            defines=search.defines,
        ),
    )
    # A directory of the search that is made later may have any of the headers.
    appearing = Footprint.of(search.not_there)
    footprint = joined([found.footprint, appearing], leave_out=own)
    # A header that only macros name is in the compiler's list of files that it read. A
    # header that a condition looks for through a macro is in no list.
    return Reads(footprint, not found.unknown.startswith("#if"))


def host_search(command: Sequence[str], working: str, *, is_nvcc: bool) -> HostSearch:
    """Ask the compiler for its search directories; without an answer, use its options'."""
    try:
        return ask_nvcc(command, working)[0] if is_nvcc else ask_host(command, working)
    except (OSError, ValueError):
        # Less is noticed then: headers that appear in the compiler's own directories are not.
        return HostSearch(dirs=named_dirs(command, working))


def _before(path: str, dirs: Sequence[str]) -> list[str]:
    """Return the paths that a compiler tries before it finds a file."""
    places = []
    for index, directory in enumerate(dirs):
        inside = os.path.join(os.path.normpath(directory), "")
        if os.path.normpath(path).startswith(inside):
            name = os.path.normpath(path)[len(inside) :]
            places += [os.path.join(one, name) for one in dirs[:index]]
    return places
