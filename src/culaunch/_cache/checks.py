"""Checks of the arguments of a cache."""

from __future__ import annotations

import os
from collections.abc import Iterable

from culaunch._base.checks import checked_path
from culaunch._base.values import spell
from culaunch._cache.entry import KEY
from culaunch._cache.place import default_bundles, default_max_bytes
from culaunch._image import Image


def checked_key(key: object) -> str:
    """Return a valid key, which becomes part of a path. Otherwise raise TypeError or ValueError."""
    if not isinstance(key, str):
        raise TypeError(f"key must be a str (got {type(key).__name__})")
    if KEY.fullmatch(key) is None:
        raise ValueError(f"key must be 64 hexadecimal digits, lower case (got {key!r})")
    return key


def checked_image(what: str, image: object) -> Image:
    """Return an image. For anything else, raise a TypeError that begins with `what`."""
    if not isinstance(image, Image):
        raise TypeError(f"{what} a culaunch.Image (got {type(image).__name__})")
    return image


def checked_bundles(given: object) -> tuple[str, ...]:
    """Return the bundles, by default from the environment."""
    if given is None:
        given = default_bundles()
    # A str is iterable, too, and would become directories with one-letter names.
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise TypeError(f"bundles must be directories (got {spell(given)})")
    return tuple(os.path.abspath(checked_path("bundles", directory)) for directory in given)


def checked_max_bytes(given: object) -> int:
    """Return the size limit. The environment sets the default."""
    if given is None:
        return default_max_bytes()
    # True is an int, but a mistake as a size.
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"max_bytes must be an int, in bytes (got {spell(given)})")
    if given <= 0:
        raise ValueError(f"max_bytes must be positive (got {given})")
    return given


def checked_lock_timeout(given: object) -> float:
    """Return how long to wait for another process, in seconds."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"lock_timeout must be a number of seconds (got {spell(given)})")
    # Written this way to refuse NaN, for which both comparisons are false.
    if not given >= 0:
        raise ValueError(f"lock_timeout must not be negative (got {given!r})")
    return given
