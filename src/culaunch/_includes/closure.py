"""Everything that a source can pull in, and a digest of it."""

from __future__ import annotations

import functools
import hashlib
import os
import posixpath
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from culaunch._includes.expansion import UnknownNameError
from culaunch._includes.files import CALLER_WORDS, PLACE_WORDS, File
from culaunch._includes.footprint import Footprint, View
from culaunch._includes.macros import Macros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# Each round follows what the macros of the files of the last one can mean.
_MAX_ROUNDS = 50


@dataclass(frozen=True)
class Search:
    """Where a compiler looks for what a source includes."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """In-memory headers, by name; they win over directories."""
    dirs: Sequence[str] = ()
    """The directories, in order."""
    quoted_dirs: Sequence[str] = ()
    """Directories that are looked through before, for quoted names alone."""
    system: Callable[[], Sequence[str]] = tuple
    """Returns the compiler's own directories; asked only when the others lack something."""
    own: frozenset[str] = frozenset()
    """Which of `dirs` are the compiler's own, too."""
    identity: str = ""
    """What else tells one compiler from another."""
    working: str = "/"
    """The directory in which the compiler takes an in-memory header to be."""
    forced: Sequence[str] = ()
    """Names that are included before the first line."""
    defines: str = ""
    """Lines that define the macros of the command line."""
    unknown: str = ""
    """Why it is not known where the compiler looks, if so."""


@dataclass
class Includes:
    """What a source can pull in."""

    text: str
    """The source, with names changed that NVRTC would not find."""
    digest: str = ""
    """Of the contents of everything, and of which name leads where; without the source itself."""
    memory: dict[str, str] = field(default_factory=dict)
    """The in-memory headers that can be reached, by name."""
    missing: list[str] = field(default_factory=list)
    """Names that were not found; they may well sit behind a false ``#if``."""
    system_files: int = 0
    """How many of the compiler's own headers there are."""
    footprint: Footprint = field(default_factory=Footprint)
    unknown: str = ""
    """What was included that the text alone does not name; then anything may have been read."""


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
    return _Walk(search).run(text, path)


@functools.lru_cache(maxsize=1024)
def source_file(text: str) -> File:
    """Scan a text that is in memory; the same text is not scanned twice."""
    return File.of(text.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class _Node:
    """A text on the way."""

    where: str
    """The path, or the name of an in-memory header."""
    in_memory: bool
    is_system: bool
    file: File


class _Walk:
    def __init__(self, search: Search) -> None:
        self.search = search
        self.view = View()
        # What is digested: each file's number, in the order in which they are met, its contents,
        # and the numbers that each of its includes leads to. Contents alone would not do: two
        # equal files in different places may include different ones by the same name.
        self.facts: list[str] = [search.identity] if search.identity else []
        self.numbers: dict[str, int] = {}
        self.nodes: list[_Node] = []
        self.memory: dict[str, str] = {}
        self.missing: dict[str, None] = {}
        self.unknown = search.unknown

    def run(self, text: str, path: str) -> Includes:
        source = source_file(text)
        root = _Node(path, False, False, source)
        self.numbers[path] = 0
        self.nodes.append(root)
        options = source_file(self.search.defines)
        for name in self.search.forced:
            working = _Node(os.path.join(self.search.working, "-"), False, False, source)
            self._follow(working, name, 0)
        for spelled in (name.spelled for name in options.scan.names):
            self._follow(root, spelled, 0)
        changed = self._visit_all(0)
        self._follow_macros(options)
        self.facts += self._places()
        digest = "\n".join(self.facts)
        return Includes(
            changed,
            hashlib.sha256(digest.encode("utf-8", "surrogateescape")).hexdigest() if digest else "",
            self.memory,
            list(self.missing),
            sum(node.is_system for node in self.nodes),
            self.view.footprint(),
            self.unknown,
        )

    def _add(self, node: _Node) -> int:
        """Return a text's number; one that is new is visited later."""
        key = f"<{node.where}>" if node.in_memory else node.where
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.nodes)
            self.nodes.append(node)
            same = "" if node.in_memory else self.view.same_as(node.where)
            also = f" {self.numbers[same]}" if same and same != node.where else ""
            self.facts.append(f"{number} is {node.file.digest}{also}")
        return number

    def _visit_all(self, start: int) -> str:
        """Visit what was added since; give the last rewritten text of the first of them."""
        first = ""
        index = start
        while index < len(self.nodes):
            node = self.nodes[index]
            text = self._visit(node, index)
            if node.in_memory:
                self.memory[node.where] = text
            first = text if index == start else first
            index += 1
        return first

    def _visit(self, node: _Node, number: int) -> str:
        """Follow one text's includes; give it, with names changed where NVRTC needs that."""
        found = node.file.scan
        parts, end = [], 0
        followed: dict[str, str | None] = {}
        for name in found.names:
            if name.spelled not in followed:
                followed[name.spelled] = self._follow(
                    node, name.spelled, number, also_behind=name.spelled in found.next_names
                )
            target = followed[name.spelled]
            if node.in_memory and target is not None and target != name.spelled[1:]:
                parts += [node.file.text[end : name.start], target]
                end = name.end
        for spelled in found.doubtful:
            self._follow(node, spelled, number, also_behind=spelled in found.next_names)
        return "".join([*parts, node.file.text[end:]])

    def _follow(
        self, includer: _Node, spelled: str, number: int, *, also_behind: bool = False
    ) -> str | None:
        """Note where one name can lead; give the in-memory header that it is."""
        nodes = self._resolve(includer, spelled, also_behind=also_behind)
        targets = [str(self._add(node)) for node in nodes]
        self.facts.append(f"{number} {spelled} {' '.join(targets) or 'missing'}")
        if not nodes:
            self.missing[spelled[1:]] = None
        return next((node.where for node in nodes if node.in_memory), None)

    def _resolve(self, includer: _Node, spelled: str, *, also_behind: bool) -> list[_Node]:
        quoted, name = spelled[0] == '"', spelled[1:]
        found: list[_Node] = []
        headers = self.search.headers
        if quoted and includer.in_memory:
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(includer.where), name))
            found += self._in_memory(beside) if beside in headers else ()
        if not found and name in headers:
            found += self._in_memory(name)
        if os.path.isabs(name):
            return found or self._on_disk(name, is_system=False)
        # NVRTC prefers headers in memory, nvcc what lies beside the file: both count.
        if quoted:
            where = os.path.dirname(includer.where)
            place = os.path.join(self.search.working, where) if includer.in_memory else where
            found += self._on_disk(os.path.join(place, name), is_system=includer.is_system)
        for directory, is_system in self._places_to_look(quoted=quoted):
            if found and not also_behind:
                break
            found += self._on_disk(os.path.join(directory, name), is_system=is_system)
        return found

    def _places_to_look(self, *, quoted: bool) -> Iterator[tuple[str, bool]]:
        search = self.search
        for directory in (*(search.quoted_dirs if quoted else ()), *search.dirs):
            yield directory, directory in search.own
        for directory in search.system():
            yield directory, True

    def _in_memory(self, name: str) -> list[_Node]:
        text = self.search.headers[name]
        return [_Node(name, True, False, source_file(text))]

    def _on_disk(self, path: str, *, is_system: bool) -> list[_Node]:
        file = None if "\0" in path else self.view.read(path)
        return [] if file is None else [_Node(path, False, is_system, file)]

    def _follow_macros(self, options: File) -> None:
        """Follow the names that macros can stand for, until there are no new files."""
        done = -1
        asked: set[tuple[int, str]] = set()
        for _ in range(_MAX_ROUNDS):
            if done == len(self.nodes):
                return
            done = len(self.nodes)
            macros = self._macros(options)
            if macros is None:
                return
            answers: dict[tuple[bool, str], set[str]] = {}
            for number, node in enumerate(self.nodes[:done]):
                scan = node.file.scan
                texts = [(True, text) for text in scan.computed]
                texts += [(False, text) for text in scan.conditions]
                for kind in texts:
                    if kind not in answers:
                        answers[kind] = self._meant(macros, *kind, node)
                    for spelled in sorted(answers[kind]):
                        if (number, spelled) not in asked:
                            asked.add((number, spelled))
                            # Which of the directive's kinds it was no longer matters: all count.
                            self._follow(node, spelled, number, also_behind=True)
            self._visit_all(done)
        self.unknown = self.unknown or "macros that lead to more and more files"

    def _macros(self, options: File) -> Macros | None:
        """Return all macros, or None when no text has a place for one that matters."""
        scans = [node.file.scan for node in self.nodes]
        if not any(scan.computed or scan.conditions for scan in scans):
            return None
        return Macros(define for scan in (options.scan, *scans) for define in scan.defines)

    def _meant(self, macros: Macros, is_include: bool, text: str, node: _Node) -> set[str]:
        try:
            return macros.included(text) if is_include else macros.asked(text)
        except UnknownNameError:
            # The compiler's own headers ask for their own files only, and which they are is pinned
            # by its version.
            if not node.is_system:
                self.unknown = self.unknown or f"#{'include' if is_include else 'if'} {text}"
            return set()

    def _places(self) -> list[str]:
        """Return the paths of the files whose path may be in what is compiled."""
        users = [node for node in self.nodes[1:] if not node.is_system]
        everywhere = any(node.file.names_caller for node in (self.nodes[0], *users))
        if not users:
            return []
        if everywhere:
            return [f"at {node.where}" for node in users]
        macros = Macros(define for node in self.nodes for define in node.file.scan.defines)
        words = macros.leading_to(PLACE_WORDS) - CALLER_WORDS
        pattern = re.compile(rf"(?<![\w$])(?:{'|'.join(map(re.escape, sorted(words)))})(?![\w$])")
        return [f"at {node.where}" for node in users if pattern.search(node.file.text)]
