"""One call of ``compile``, checked: the job that it comes to, and its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._compile.backend import Job
from culaunch._compile.key import cache_key
from culaunch._compile.recall import recall, recall_key, remember
from culaunch._includes.closure import Includes, follow, source_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._cache.cache import Cache
    from culaunch._compile.backend import Backend
    from culaunch._compile.headers import Headers
    from culaunch._compile.options import Options
    from culaunch._compile.source import Source
    from culaunch._includes.closure import Search


@dataclass(frozen=True)
class Request:
    """What to compile, with which compiler and for which architectures."""

    unit: Source
    options: Options
    compiler: Backend
    archs: Sequence[str]
    names: tuple[str, ...]
    headers: Headers
    include_dirs: tuple[str, ...]
    pch: bool

    def key(self, includes_digest: str) -> str:
        """Return the cache key, given the digest of all that the source pulls in."""
        return cache_key(
            # A key does not need the text: the digest represents it.
            self.job(Includes("", includes_digest)),
            source_digest=source_facts(self.unit.text).digest,
            archs=self.archs,
            backend=self.compiler.name,
            identity=self.compiler.identity(),
        )

    def recalled(self, store: Cache) -> str | None:
        """Return the digest of the headers without following them, if they are as they were."""
        search = self._search()
        if self._is_alone(search):
            return None
        return recall(self._recall_key(search), store)

    def includes(self, store: Cache | None = None) -> Includes:
        """Follow the headers, and cache their digest."""
        search = self._search()
        found = follow(self.unit.text, self._place, search)
        if store is not None and not found.unknown and not self._is_alone(search):
            remember(self._recall_key(search), found, store)
        return found

    def job(self, includes: Includes) -> Job:
        """Return the job for the compiler."""
        return Job(
            includes.text,
            self.unit.name,
            self.compiler.flags(self.options),
            self.names,
            self.unit.directory,
            includes.memory,
            self.include_dirs,
            includes.digest,
            includes.system_files,
            includes.is_heavy,
            includes.unknown,
            includes.missing,
            self.options.lto,
            self.options.shows_paths,
            self.pch,
        )

    def _search(self) -> Search:
        return self.compiler.search(
            self.options, self.unit.directory, self.headers, self.include_dirs
        )

    def _is_alone(self, search: Search) -> bool:
        """Tell whether no file but the source itself can matter, which needs no note."""
        is_alone = source_facts(self.unit.text).names_no_file
        return is_alone and not search.forced and source_facts(search.defines).names_no_file

    def _recall_key(self, search: Search) -> str:
        digest = source_facts(self.unit.text).digest
        return recall_key(digest, self._place, self.headers.digest, search)

    @property
    def _place(self) -> str:
        return self.job(Includes("")).place
