"""Lists in a manifest's entries, with limits, and errors that name the entry."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from culaunch._errors import ImageError
from culaunch._ship.manifest.texts import MOST_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def list_of(data: Mapping[str, Any], key: str, most: int) -> list[Any]:
    """Return the list of an entry.

    Raise ValueError if there is none, or it is longer than it may be.
    """
    value = data.get(key)
    if type(value) is not list or len(value) > most:
        raise ValueError(f"{key} must be a list of at most {most} entries")
    return value


def texts_of(data: Mapping[str, Any], key: str, most: int) -> list[str]:
    """Return the list of texts of an entry, like :func:`list_of`."""
    value = list_of(data, key, most)
    if not all(isinstance(one, str) and len(one) <= MOST_TEXT for one in value):
        raise ValueError(f"each item of {key} must be a text of at most {MOST_TEXT} characters")
    return value


@contextlib.contextmanager
def naming_the_entry(data: Mapping[str, Any], source: str) -> Iterator[None]:
    """Add to an error which entry of a manifest is wrong.

    Raise ImageError if the block raises a ValueError or a TypeError.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ImageError(
            f"the manifest's entry of {data['name']!r:.60} is invalid: {error}", source=source
        ) from None
