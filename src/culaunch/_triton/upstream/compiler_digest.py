"""The digest of Triton's own files, which is part of the key of everything that it compiles.

Triton reads and hashes its whole installation, about 400 MB, once in each process before it looks
into its cache on disk. This is most of a first call's time if its kernel is cached. culaunch caches
the digest until the files change.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._cache.default import default_cache
from culaunch._cache.note import Note
from culaunch._errors import CacheWarning
from culaunch._triton.upstream.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "triton_key"
# The modules in which Triton's versions define the function, or call it.
_HOLDERS = ("runtime.cache", "compiler.compiler")
# The files of the package that the function reads.
_READ = ("compiler", "backends", "language", "runtime", "_C")
_SUFFIXES = (".py", ".so")
_lock = ForkLock()


@contextlib.contextmanager
def known_compiler() -> Iterator[None]:
    """In the block, let Triton compile with the cached digest of its files."""
    with _lock:
        found = _digest()
        # Only if Triton still has the original function. Other code's replacement stays.
        own = found.function if found is not None else None
        holders = [
            one for one in _modules() if own is not None and getattr(one, _NAME, None) is own
        ]
        for one in holders:
            setattr(one, _NAME, found)
    try:
        yield
    finally:
        with _lock:
            for one in holders:
                if getattr(one, _NAME, None) is found:
                    setattr(one, _NAME, own)


class _Digest:
    """Replaces Triton's function."""

    def __init__(self, function: Any, value: str) -> None:
        self.function = function
        self._value = value

    def __call__(self) -> str:
        return self._value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


@functools.cache
def _digest() -> _Digest | None:
    """Return the cached digest, or None if Triton must compute it."""
    function: Any = next((getattr(one, _NAME) for one in _modules() if hasattr(one, _NAME)), None)
    if not hasattr(function, "cache_info") or function.cache_info().currsize:
        return None  # another version, or it is done already
    # Use the names, sizes, times and number of all files instead of their contents: a walk of
    # milliseconds instead of reading 400 MB.
    key = _state_of_files()
    if key is None:
        return None
    with warnings.catch_warnings():
        # The user did not ask for a cache here. An unusable cache is reported when the user does.
        warnings.simplefilter("ignore", CacheWarning)
        cache = default_cache()
        note = cache.read_note(key)
        if note is None:
            note = Note(function(), [])
            cache.keep_note(key, note)
    return _Digest(function, note.result)


def _state_of_files() -> str | None:
    """Return a value that changes with any of Triton's files: writing a file changes its time."""
    package = triton_module()
    folder = os.path.dirname(os.path.abspath(package.__file__))
    state = [package.__version__, sys.version, folder]
    try:
        for part in _READ:
            for place, folders, files in os.walk(os.path.join(folder, part), followlinks=True):
                # Change the list in place, which tells `os.walk` where to go. Sort it, because the
                # key must not depend on a directory's order.
                folders[:] = sorted(one for one in folders if one != "__pycache__")
                for file in sorted(files):
                    if not file.endswith(_SUFFIXES):
                        continue
                    path = os.path.join(place, file)
                    found = os.stat(path)
                    state.append(
                        f"{path} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} "
                        f"{found.st_ino}"
                    )
    except OSError:
        return None
    return hashlib.sha256("\0".join(state).encode("utf-8", "surrogateescape")).hexdigest()


def _modules() -> list[Any]:
    modules = []
    for name in _HOLDERS:
        with contextlib.suppress(ImportError):
            modules.append(triton_module(name))
    return modules
