"""Source text, or the file that holds it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from culaunch._base.checks import checked_path, is_text
from culaunch._base.values import spell

# A kernel cannot be written without one of these, and a sane path has none of them. The string
# alone decides, never what happens to be on the disk.
_ONLY_IN_TEXT = ("\n", ";", "{", "#")


@dataclass(frozen=True)
class Source:
    """The text of one translation unit."""

    text: str
    name: str
    directory: str | None
    """Where the file lies, so that ``#include "neighbour.h"`` works; None for text."""


def read_source(source: str | os.PathLike[str], name: str | None) -> Source:
    """Read a path, or take text as it is.

    Parameters
    ----------
    source : str or os.PathLike
        Text when it contains a newline, ``;``, ``{`` or ``#``; otherwise a path.
    name : str, optional
        The name in the compiler's messages; by default the file's name or ``kernel.cu``.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            "source must be text (a str) or a path "
            f"(got {type(source).__name__}); decode bytes first"
        )
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name must be a str, a file name for messages (got {spell(name)})")
    if name is not None and (not name or "\n" in name or not is_text(name)):
        raise ValueError(f"name must be a file name for messages (got {name!r})")
    if is_source_text(source):
        assert isinstance(source, str)
        text, directory = source, None
    else:
        path = checked_path("source", source)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                error.errno, "source is neither CUDA source text nor an existing file", path
            ) from None
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"source {path!r} is not text: {error.reason} at byte {error.start}"
            ) from None
        directory = os.path.dirname(os.path.abspath(path))
        # A file's name may be any bytes, what messages call it is text.
        name = name or os.fsencode(os.path.basename(path)).decode(errors="replace")
    if "\0" in text:
        raise ValueError(
            f"source {name or 'text'!r} is not text: it has a null byte at {text.index(chr(0))}"
        )
    if not is_text(text):
        raise ValueError(f"source {name or 'text'!r} is not text: it has a lone surrogate")
    if not text.strip():
        raise ValueError("source is empty; give the text of a kernel, or the path of one")
    return Source(text, name or "kernel.cu", directory)


def is_source_text(source: object) -> bool:
    """Tell whether a source is text itself, and no path."""
    return isinstance(source, str) and (not source or any(mark in source for mark in _ONLY_IN_TEXT))
