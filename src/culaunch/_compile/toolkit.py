"""CUDA's own headers that belong to one NVRTC: never a mismatched pair."""

from __future__ import annotations

import functools
import os
import re
from typing import TYPE_CHECKING

from culaunch._base.compiler_files import little_room
from culaunch._base.cuda_places import USUAL_HOME, chosen_homes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_VERSION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+CUD(?:ART|A)_VERSION[ \t]+(\d+)", re.MULTILINE)


class Toolkit:
    """The directories with CUDA's own headers, found at first use.

    Parameters
    ----------
    find_dirs : callable
        Returns the directories, in search order, and notes on those that were rejected.
    """

    def __init__(self, find_dirs: Callable[[], tuple[list[str], list[str]]]) -> None:
        self._find_dirs = find_dirs

    @functools.cached_property
    def _located(self) -> tuple[list[str], list[str]]:
        return self._find_dirs()

    @property
    def dirs(self) -> Sequence[str]:
        """The directories, in search order."""
        return self._located[0]

    @property
    def notes(self) -> Sequence[str]:
        """Which directories were looked at and why they were rejected."""
        return self._located[1]

    def find(self, name: str) -> str | None:
        """Return the path of a header, or None."""
        paths = (os.path.join(directory, name) for directory in self.dirs)
        return next((path for path in paths if os.path.isfile(path)), None)


def find_nvrtc_headers(
    version: str,
    library: str,
    install_bundled: Callable[[str], str | None],
    bundled_root: Callable[[], str],
    spare_root: Callable[[], str] | None = None,
) -> tuple[list[str], list[str]]:
    """Find the headers that belong to an NVRTC.

    The candidates are the directory beside the library (in pip's packages as in a toolkit), then
    the result of cuda-pathfinder. Directories from the environment and the usual places follow.
    Each counts only if it has the same version. Missing headers come from NVRTC 13.3 and newer,
    which contain their own headers.

    Parameters
    ----------
    version : str
        NVRTC's version, ``"13.5"``.
    library : str
        The path of libnvrtc.
    install_bundled : callable
        Unpacks NVRTC's bundled headers into a directory; returns None, or the reason why it cannot.
    bundled_root : callable
        Returns that directory.
    spare_root : callable, optional
        Returns another directory, in case the disk of the first one is full.
    """
    found: list[str] = []
    notes: list[str] = []
    seen: set[str] = set()
    for directory in _candidates(library, version):
        if directory in seen or not os.path.isdir(directory):
            continue
        seen.add(directory)
        # Headers of another version often compile, but give wrong results if they differ from the
        # compiler's built-in parts.
        theirs = header_version(directory)
        if theirs == version:
            # A second place of the same version adds headers that the first lacks: pip's runtime
            # has no CCCL, but the toolkit beside it does.
            found += [path for path in _with_companions(directory) if path not in found]
            if _is_whole(found):
                break
            continue
        what = f"is for CUDA {theirs}" if theirs else "has no cuda_runtime_api.h"
        notes.append(f"headers in {directory!r} were not used: it {what}, but NVRTC is {version}")
    # Unpacking takes a while and some megabytes: only where something is missing.
    if not _is_whole(found):
        root = bundled_root()
        failure = install_bundled(root)
        if failure is not None and spare_root is not None and little_room(root):
            # A cache's full disk fails no compile.
            root = spare_root()
            failure = install_bundled(root)
        if failure is None:
            found += [root, os.path.join(root, "cccl")]
        else:
            notes.append(f"NVRTC's bundled headers were not used: {failure}")
    if not found:
        notes.append(
            f"no CUDA {version} headers were found: pip install "
            f"'nvidia-cuda-runtime=={version}.*' nvidia-cuda-crt nvidia-cuda-cccl"
        )
    return found, notes


def header_version(directory: str) -> str | None:
    """Return the CUDA version of a header directory, ``"13.5"``, or None if it has none."""
    for name in ("cuda_runtime_api.h", "cuda.h"):
        try:
            with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                match = _VERSION.search(file.read())
        except OSError:
            continue
        if match is not None:
            return f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}"
    return None


def _candidates(library: str, version: str) -> Iterator[str]:
    # One by one: asking cuda-pathfinder takes longer than everything else.
    lib = os.path.dirname(os.path.realpath(library))
    for up in ("..", "../..", "../../.."):
        yield os.path.normpath(os.path.join(lib, up, "include"))
    located = _pathfinder("cudart")
    if located is not None:
        yield located
    homes = [*chosen_homes(), f"{USUAL_HOME}-{version}", USUAL_HOME]
    yield from (os.path.join(home, "include") for home in homes)


def _with_companions(directory: str) -> list[str]:
    """Add what pip or the toolkit keeps in directories of their own: CCCL, cuRAND."""
    dirs = [directory]
    nested = os.path.join(directory, "cccl")
    if os.path.isdir(nested):
        dirs.append(nested)
    # Other companions count only when they come from the same installation: below the directory
    # that holds this one, which for pip's CUDA 12 packages is `nvidia`.
    home = os.path.dirname(directory)
    if os.path.basename(os.path.dirname(home)) == "nvidia":
        home = os.path.dirname(home)
    for name, header in (("cccl", "nv/target"), ("curand", "curand_kernel.h")):
        located = None if _has(dirs, header) else _pathfinder(name)
        if located is not None and located.startswith(home + os.sep):
            dirs.append(located)
    return list(dict.fromkeys(dirs))


def _is_whole(dirs: Sequence[str]) -> bool:
    return all(_has(dirs, name) for name in ("cuda_fp16.h", "crt/mma.h", "nv/target"))


def _has(dirs: Sequence[str], name: str) -> bool:
    return any(os.path.isfile(os.path.join(directory, name)) for directory in dirs)


def _pathfinder(name: str) -> str | None:
    try:
        from cuda.pathfinder import (  # type: ignore[import-untyped]
            locate_nvidia_header_directory,
        )
    except ImportError:
        return None
    located = locate_nvidia_header_directory(name)
    return None if located is None or located.abs_path is None else str(located.abs_path)
