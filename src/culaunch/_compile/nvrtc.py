"""The NVRTC backend: one source, one architecture, one program.

``include/culaunch/jit`` does the work, and programs without Python use it as well.
"""

from __future__ import annotations

import functools
import os
import warnings
from typing import TYPE_CHECKING

from culaunch._base.nvidia_libraries import needed
from culaunch._base.scratch import remove_dead_once
from culaunch._compile.architectures import check_supported
from culaunch._compile.backend import Backend, Compiled, Job
from culaunch._compile.toolkit import Toolkit
from culaunch._core import (
    nvrtc_compile,
    nvrtc_headers,
    nvrtc_place,
    nvrtc_version,
    open_nvrtc,
    set_pip_folders,
)
from culaunch._errors import CacheWarning
from culaunch._includes.closure import Search

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culaunch._compile.options import Options


class Nvrtc(Backend):
    """NVIDIA's runtime compiler, a library."""

    name = "nvrtc"

    def __init__(self) -> None:
        self.toolkit = Toolkit(lambda: nvrtc_headers(opened_nvrtc()))

    def identity(self) -> str:
        """Return the identity of the library's build, without loading it."""
        return nvrtc_place(opened_nvrtc())[1]

    def flags(self, options: Options) -> list[str]:
        """Spell the options."""
        return options.nvrtc_flags()

    def search(
        self,
        options: Options,
        directory: str | None,  # noqa: ARG002 - the source's name contains it
        headers: Mapping[str, str],
        include_dirs: Sequence[str],
    ) -> Search:
        """Return where it looks for headers."""
        return Search(
            headers,
            include_dirs,
            system=lambda: self.toolkit.dirs,
            working=os.getcwd(),
            forced=options.forced_includes,
            defines=options.define_lines,
        )

    def check_archs(self, archs: Sequence[str]) -> None:
        """Raise for an architecture that the library does not know."""
        version, known = loaded_version()
        check_supported(archs, known, f"NVRTC {version}")

    def compile(self, job: Job, arch: str) -> Compiled:
        """Compile for one architecture. Other Python threads continue meanwhile."""
        remove_dead_once()
        fields = (
            job.text,
            job.name,
            job.directory,
            job.flags,
            job.names,
            job.include_dirs,
            dict(job.memory),
            job.includes_digest,
            job.system_files,
            job.unknown,
            job.missing,
            job.lto,
            job.paths,
            job.pch,
        )
        return Compiled(arch, *nvrtc_compile(opened_nvrtc(), fields, arch))


@functools.cache
def opened_nvrtc() -> object:
    """Find NVRTC, which is loaded when it is first needed: that takes a tenth of a second."""
    with needed("compiling", "NVRTC", set_pip_folders):
        return open_nvrtc("", _private_directory, _warn)


@functools.cache
def loaded_version() -> tuple[str, tuple[int, ...]]:
    """Load NVRTC; return its version, ``"13.5"``, and the numbers of the architectures."""
    nvrtc = opened_nvrtc()
    with needed("compiling", "NVRTC", set_pip_folders):
        return nvrtc_version(nvrtc)


def loaded_library() -> str:
    """Return the path of the libnvrtc that is in use."""
    return nvrtc_place(opened_nvrtc())[0]


def _private_directory(*parts: str) -> str:
    from culaunch._cache.default import default_cache

    return default_cache().private_directory(*parts)


def _warn(text: str) -> None:
    warnings.warn(text, CacheWarning, stacklevel=2)
