"""What the environment says about the user's cache."""

from __future__ import annotations

import os

_DEFAULT_MAX_BYTES = 2 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def default_path() -> str:
    """Give the user's cache directory."""
    named = os.environ.get("CULAUNCH_CACHE_DIR")
    if named:
        return named
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "culaunch")


def default_shipped() -> list[str]:
    """Give the directories that an application ships."""
    return [path for path in os.environ.get("CULAUNCH_CACHE_SHIPPED", "").split(os.pathsep) if path]


def default_max_bytes() -> int:
    """Give the cap on the size of the cache."""
    text = os.environ.get("CULAUNCH_CACHE_MAX_SIZE", "").strip().upper().removesuffix("B")
    if not text:
        return _DEFAULT_MAX_BYTES
    unit = text[-1] if text[-1] in "KMGT" else ""
    number = text.removesuffix(unit)
    if not number.isdigit() or int(number) == 0:
        raise ValueError(
            f"CULAUNCH_CACHE_MAX_SIZE must be a size such as 512M or 2G (got {text!r})"
        )
    return int(number) * _UNITS[unit]
