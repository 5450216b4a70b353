"""The interface of a compiler for ``compile``: the same job in, the same result out."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._compile.options import Options
    from culaunch._compile.toolkit import Toolkit
    from culaunch._includes.closure import Search


# A directory that does not exist.
NOWHERE = "/culaunch/source"


@dataclass(frozen=True)
class Job:
    """One source with everything that it needs, for any number of architectures."""

    text: str
    name: str
    flags: Sequence[str]
    names: Sequence[str] = ()
    directory: str | None = None
    """Where a source that is a file lies."""
    memory: Mapping[str, str] = field(default_factory=dict)
    """In-memory headers, by name."""
    include_dirs: Sequence[str] = ()
    includes_digest: str = ""
    system_files: int = 0
    """How many of the compiler's own headers it reads. Without one, it compiles without them."""
    is_heavy: bool = False
    unknown: str = ""
    missing: Sequence[str] = ()
    lto: bool = False
    paths: bool = False
    """Whether the image says where its source is: with debug or line information."""
    pch: bool = False

    @property
    def place(self) -> str:
        """The path that the compiler assumes for the source."""
        return os.path.join(self.directory or NOWHERE, os.path.basename(self.name))

    @property
    def shown_name(self) -> str:
        """The name of the source for the compiler."""
        if self.paths and self.directory is not None:
            return os.path.join(self.directory, self.name)
        return self.name


@dataclass(frozen=True)
class Compiled:
    """The output of a backend for one architecture."""

    arch: str
    kind: str
    """``"cubin"``, ``"ptx"`` or ``"ltoir"``."""
    data: bytes
    names: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    log: str = ""


class Backend(abc.ABC):
    """A compiler."""

    name: str
    toolkit: Toolkit
    """CUDA's own headers that belong to it."""

    @abc.abstractmethod
    def identity(self) -> str:
        """Return the identity of exactly this build of the compiler, for a cache key."""

    @abc.abstractmethod
    def flags(self, options: Options) -> list[str]:
        """Spell the options for this compiler."""

    @abc.abstractmethod
    def search(
        self,
        options: Options,
        directory: str | None,
        headers: Mapping[str, str],
        include_dirs: Sequence[str],
    ) -> Search:
        """Return where it looks for headers.

        Parameters
        ----------
        options : Options
            The options.
        directory : str, optional
            Where a source that is a file lies.
        headers : Mapping[str, str]
            In-memory headers.
        include_dirs : sequence of str
            The caller's directories.
        """

    @abc.abstractmethod
    def check_archs(self, archs: Sequence[str]) -> None:
        """Raise for an unsupported architecture, with the list of the supported ones."""

    @abc.abstractmethod
    def compile(self, job: Job, arch: str) -> Compiled:
        """Compile for one architecture."""
