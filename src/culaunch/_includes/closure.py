"""Everything that a source can pull in, and a digest of it.

``include/culaunch/jit`` does the work, and programs without Python use it as well. Both therefore
find the same files and compute the same keys.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from culaunch._core import follow as follow_source
from culaunch._core import source_facts as facts_of
from culaunch._includes.footprint import Footprint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from culaunch._core import SearchFields


@dataclass(frozen=True)
class Search:
    """The directories in which a compiler searches for included files."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """In-memory headers, by name; they win over directories."""
    dirs: Sequence[str] = ()
    """The directories, in order."""
    quoted_dirs: Sequence[str] = ()
    """Directories that are searched first, only for quoted names."""
    system: Callable[[], Sequence[str]] = tuple
    """Returns the compiler's own directories; asked only when the others lack something."""
    own: frozenset[str] = frozenset()
    """Which of `dirs` are the compiler's own, too."""
    identity: str = ""
    """The rest of the compiler's identity."""
    working: str = "/"
    """The directory in which the compiler takes an in-memory header to be."""
    forced: Sequence[str] = ()
    """Names that are included before the first line."""
    defines: str = ""
    """Lines that define the macros of the command line."""
    unknown: str = ""
    """Why it is not known where the compiler looks, if so."""

    @property
    def fields(self) -> SearchFields:
        """All but `headers` and `system`, in the order in which the extension takes them."""
        return (
            self.dirs,
            self.quoted_dirs,
            self.own,
            self.identity,
            self.working,
            self.forced,
            self.defines,
            self.unknown,
        )


@dataclass
class Includes:
    """All files that a source can pull in."""

    text: str
    """The source, with names changed that NVRTC would not find."""
    digest: str = ""
    """The digest of all contents, and of the file that each name leads to; without the source."""
    memory: dict[str, str] = field(default_factory=dict)
    """The in-memory headers that can be reached, by name."""
    missing: Sequence[str] = ()
    """Names that were not found; they may well sit behind a false ``#if``."""
    system_files: int = 0
    """How many of the compiler's own headers there are."""
    is_heavy: bool = False
    """Whether they take so long to read that they should be read once only."""
    footprint: Footprint = field(default_factory=Footprint)
    unknown: str = ""
    """An include that the text does not name; any file may then have been read."""


def follow(text: str, path: str, search: Search) -> Includes:
    """Follow the includes of a source, whatever the ``#if`` around them says.

    Parameters
    ----------
    text : str
        The source.
    path : str
        Where it is, or where the compiler takes it to be.
    search : Search
        Where to look.
    """
    # The extension scans. C++ programs that compile at run time use the same code and find the same
    # files.
    changed, digest, memory, missing, system_files, is_heavy, looked, unknown = follow_source(
        text, path, dict(search.headers), search.fields, search.system
    )
    footprint = Footprint.from_json(looked)
    return Includes(
        changed, digest, dict(memory), missing, system_files, is_heavy, footprint, unknown
    )


class SourceFacts(NamedTuple):
    """The includes of a single text."""

    digest: str
    """The SHA-256 of its bytes."""
    names_no_file: bool
    """Whether no other file can matter, whatever macros are defined."""


@functools.lru_cache(maxsize=1024)
def source_facts(text: str) -> SourceFacts:
    """Scan a text that is in memory; the same text is not scanned twice."""
    return SourceFacts(*facts_of(text))
