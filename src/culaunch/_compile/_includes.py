"""Which headers a source pulls in, and a digest of their contents for the cache key.

The scan is textual: it follows every ``#include`` and ``__has_include`` whatever the ``#if`` around
it says, so it may take in too much and never too little. It depends on contents only: neither
paths nor times are in the digest.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._compile._toolkit import Toolkit

# What may follow the word `include`: its place is found first, which is quick in a long text.
_DIRECTIVE = re.compile(
    r"include(?:_next)?\b[ \t]*(?:(?P<name>[<\"][^>\"\n]+)[>\"]|(?P<computed>[^\n]*))"
)
_QUESTION = re.compile(r"include(?:_next)?[ \t]*\([ \t]*(?P<name>[<\"][^>\"\n]+)[>\"]")


@dataclass
class Includes:
    """What the scan of one source found."""

    digest: str = ""
    """Of everything that the source pulls in, without the source itself."""
    memory: dict[str, str] = field(default_factory=dict)
    """The in-memory headers that can be reached, by name."""
    missing: list[str] = field(default_factory=list)
    """Names that were not found; they may well sit behind a false ``#if``."""
    toolkit: bool = False
    """Whether any of CUDA's own headers is used."""
    toolkit_files: int = 0
    """How many files CUDA's own headers come to."""


@dataclass(frozen=True)
class _File:
    """A header: where it is, and what is in it."""

    where: str
    in_memory: bool
    text: str
    digest: str


def collect_includes(
    text: str,
    headers: Mapping[str, str],
    include_dirs: Sequence[str],
    toolkit: Toolkit,
    path: str | None = None,
    forced: Sequence[str] = (),
) -> tuple[str, Includes]:
    """Follow the includes of a source.

    Parameters
    ----------
    text : str
        The source.
    headers : Mapping[str, str]
        In-memory headers. They win over directories, as they do for NVRTC.
    include_dirs : sequence of str
        The caller's directories, in order.
    toolkit : Toolkit
        CUDA's own headers, looked at only when something is not found in the others.
    path : str, optional
        Where the source is, if it is a file.
    forced : sequence of str
        Names that options include before the first line.

    Returns
    -------
    str
        The source to compile, with the include names that NVRTC would not resolve rewritten.
    Includes
    """
    return _Scan(headers, include_dirs, toolkit).run(text, path, forced)


class _Scan:
    def __init__(
        self, headers: Mapping[str, str], include_dirs: Sequence[str], toolkit: Toolkit
    ) -> None:
        self.headers = headers
        self.dirs = include_dirs
        self.toolkit = toolkit
        self.found = Includes()
        # What is digested: each file's number, in the order in which they are met, its contents,
        # and the number that each of its includes leads to. Contents alone would not do: two
        # equal files in different places may include different ones by the same name.
        self.facts: list[str] = []
        self.numbers: dict[str, int] = {}
        self.seen: dict[str, _File] = {}
        self.whole = False
        self._shadow: frozenset[str] | None = None

    def run(self, text: str, path: str | None, forced: Sequence[str]) -> tuple[str, Includes]:
        root = _File(path or "", path is None, text, "source")
        todo = [root]
        for name in forced:
            self._follow(root, f'"{name}', todo)
        text = self._visit(root, todo)
        while todo:
            file = todo.pop()
            rewritten = self._visit(file, todo)
            if file.in_memory and file is not root:
                self.found.memory[file.where] = rewritten
        if self.whole:
            self._take_everything()
        if self.facts:
            self.found.digest = hashlib.sha256("\n".join(self.facts).encode()).hexdigest()
        return text, self.found

    def _visit(self, file: _File, todo: list[_File]) -> str:
        """Follow one file's includes; give its text, rewritten where NVRTC needs it."""
        changed = []
        for spelled, computed, place in scan(file.text):
            if computed:
                # Which file `#include MACRO` means depends on macros: take in all that it may be.
                self.whole = True
                continue
            target = self._follow(file, spelled, todo)
            if file.in_memory and target is not None and target != spelled[1:]:
                changed.append((place, spelled[1:], target))
        text = file.text
        for place, old, new in reversed(changed):
            text = text[:place] + new + text[place + len(old) :]
        return text

    def _follow(self, includer: _File, spelled: str, todo: list[_File]) -> str | None:
        """Resolve one name, note the edge, and give the in-memory name that it resolved to."""
        file = self._resolve(includer, spelled)
        if file is None:
            self._follow_toolkit(includer, spelled, todo)
            return None
        self._note(includer, spelled, file, todo)
        return file.where if file.in_memory else None

    def _note(self, includer: _File, spelled: str, file: _File, todo: list[_File]) -> None:
        if file.where not in self.seen:
            self.seen[file.where] = file
            self.numbers[file.where] = len(self.numbers) + 1
            self.facts.append(f"{self.numbers[file.where]} is {file.digest}")
            todo.append(file)
        number = self.numbers.get(includer.where, 0)
        self.facts.append(f"{number} {spelled} {self.numbers[file.where]}")

    def _follow_toolkit(self, includer: _File, spelled: str, todo: list[_File]) -> None:
        path = self.toolkit.find(spelled[1:])
        if path is None:
            self.facts.append(f"{self.numbers.get(includer.where, 0)} {spelled} missing")
            self.found.missing.append(spelled[1:])
            return
        self.found.toolkit = True
        closure = self.toolkit.closure(path)
        self.found.toolkit_files = max(self.found.toolkit_files, closure.files)
        if not self._shadows() & closure.top_names:
            number = self.numbers.get(includer.where, 0)
            self.facts.append(f"{number} {spelled} {closure.digest}")
            return
        # The caller's own files may stand in for some of CUDA's: follow each one.
        text, digest = self.toolkit.read(path)
        self._note(includer, spelled, _File(path, False, text, digest), todo)

    def _resolve(self, includer: _File, spelled: str) -> _File | None:
        quoted, name = spelled[0] == '"', spelled[1:]
        if quoted and includer.in_memory:
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(includer.where), name))
            if beside in self.headers:
                return self._in_memory(beside)
        if name in self.headers:
            return self._in_memory(name)
        if quoted and not includer.in_memory:
            file = self._on_disk(os.path.join(os.path.dirname(includer.where), name))
            if file is not None:
                return file
        for directory in self.dirs:
            file = self._on_disk(os.path.join(directory, name))
            if file is not None:
                return file
        return None

    def _in_memory(self, name: str) -> _File:
        known = self.seen.get(name)
        return known or _File(name, True, self.headers[name], text_digest(self.headers[name]))

    def _on_disk(self, path: str) -> _File | None:
        known = self.seen.get(path)
        if known is not None:
            return known
        try:
            with open(path, "rb") as file:
                text = file.read().decode(errors="replace")
        except OSError:
            return None
        return _File(path, False, text, text_digest(text))

    def _shadows(self) -> frozenset[str]:
        """Give the first components of the names in the caller's headers and directories."""
        if self._shadow is None:
            names = {name.partition("/")[0] for name in self.headers}
            for directory in self.dirs:
                with contextlib.suppress(OSError):
                    names.update(os.listdir(directory))
            self._shadow = frozenset(names)
        return self._shadow

    def _take_everything(self) -> None:
        for name, text in sorted(self.headers.items()):
            self.found.memory.setdefault(name, text)
            self.facts.append(f"all {name} {text_digest(text)}")
        for index, directory in enumerate(self.dirs):
            for parent, children, leaves in os.walk(directory):
                children.sort()
                for leaf in sorted(leaves):
                    file = self._on_disk(os.path.join(parent, leaf))
                    if file is not None:
                        name = os.path.relpath(file.where, directory)
                        self.facts.append(f"all {index} {name} {file.digest}")


@functools.lru_cache(maxsize=4096)
def scan(text: str) -> tuple[tuple[str, bool, int], ...]:
    """Find the includes of a text: ``"name`` or ``<name``, whether computed, and where."""
    found = []
    at = text.find("include")
    while at >= 0:
        before = text[text.rfind("\n", 0, at) + 1 : at]
        match = None
        if before.strip(" \t") == "#":
            match = _DIRECTIVE.match(text, at)
        elif before.endswith("__has_"):
            match = _QUESTION.match(text, at)
        if match is not None and match["name"]:
            found.append((match["name"], False, match.start("name") + 1))
        elif match is not None:
            found.append((match["computed"], True, at))
        at = text.find("include", at + 7)
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def text_digest(text: str) -> str:
    """Give the SHA-256 of a text; the same text is not hashed twice."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
