"""The environment variables of the user's cache."""

from __future__ import annotations

import functools
import os
import warnings

from culaunch._errors import CacheWarning

_DEFAULT_MAX_BYTES = 2 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def default_path() -> str:
    """Return the user's cache directory."""
    named = os.environ.get("CULAUNCH_CACHE_DIR")
    if named:
        return named
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification requires ignoring relative paths.
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "culaunch")


def default_bundles() -> list[str]:
    """Return the directories that an application ships."""
    return [path for path in os.environ.get("CULAUNCH_CACHE_BUNDLES", "").split(os.pathsep) if path]


def default_max_bytes() -> int:
    """Return the cap on the size of the cache.

    An invalid value causes one warning, and the default is used, because a problem of the cache
    must not fail a compile.
    """
    return _max_bytes(os.environ.get("CULAUNCH_CACHE_MAX_SIZE", ""))


@functools.lru_cache(maxsize=16)
def _max_bytes(given: str) -> int:
    text = given.strip().upper().removesuffix("B")
    if not text:
        return _DEFAULT_MAX_BYTES
    unit = text[-1] if text[-1] in "KMGT" else ""
    number = text.removesuffix(unit)
    # isdigit() would also accept a superscript two.
    if not (number.isascii() and number.isdigit()) or len(number) > 15 or int(number) == 0:
        warnings.warn(
            f"CULAUNCH_CACHE_MAX_SIZE must be a size such as 512M or 2G (got {given!r}); "
            "2G is used",
            CacheWarning,
            stacklevel=2,
        )
        return _DEFAULT_MAX_BYTES
    return int(number) * _UNITS[unit]
