"""``Headers``: device headers held in memory, by the name that ``#include`` uses."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_path, is_text
from culaunch._base.values import spell

if TYPE_CHECKING:
    from importlib.abc import Traversable

_SUFFIXES = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".def")


class Headers(Mapping[str, str]):
    """In-memory headers: a mapping from the name in ``#include`` to the text.

    It is immutable: make it once and use it for many compilations. ``|`` joins two of them, and the
    right one takes precedence.

    Parameters
    ----------
    files : Mapping[str, str], optional
        Text by name, such as ``{"my/math.h": "..."}``. Names are relative and use ``/``.

    Examples
    --------
    >>> headers = cl.compiling.Headers({"factor.h": "#define FACTOR 2.0f"})
    >>> text = '#include "factor.h"' + chr(10) + "__device__ float f = FACTOR;"
    >>> image = cl.compile(text, headers=headers)
    """

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        files = {} if files is None else files
        if not isinstance(files, Mapping):
            raise TypeError(f"headers must map names to text (got {type(files).__name__})")
        self._files = {_checked_name(name): _checked_text(name, files[name]) for name in files}

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 of all names and texts."""
        # Sorted, because a mapping's order has no meaning for a compiler. JSON, because joined
        # names and texts could be split elsewhere.
        text = json.dumps(sorted(self._files.items()))
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_directory(cls, directory: str | os.PathLike[str]) -> Headers:
        """Read every header below a directory once.

        A header is a file with one of the usual suffixes (``.h``, ``.cuh``, ``.hpp``, ``.inl``
        and the like) or with none, as the C++ standard headers are. Hidden files are left out.

        Parameters
        ----------
        directory : str or os.PathLike
            The directory to pass to ``-I``.

        Returns
        -------
        Headers
            The texts, by their paths below the directory.

        Raises
        ------
        OSError
            If it is not a directory, or cannot be read.
        ValueError
            If a header is not text.
        """
        root = checked_path("directory", directory)
        if not os.path.isdir(root):
            raise NotADirectoryError(f"headers: {root!r} is not a directory")
        files = {}
        for parent, children, leaves in os.walk(root):
            # Change the list in place, to keep `walk` out of hidden directories.
            children[:] = sorted(name for name in children if not name.startswith("."))
            for leaf in sorted(leaves):
                if _is_header(leaf):
                    path = os.path.join(parent, leaf)
                    with open(path, "rb") as file:
                        name = os.path.relpath(path, root).replace(os.sep, "/")
                        files[name] = _decoded(file.read(), path)
        return cls(files)

    @classmethod
    def from_package(cls, package: str, *path: str) -> Headers:
        """Read the headers that a Python package ships as package data, wherever it is installed.

        Parameters
        ----------
        package : str
            The package's import name.
        *path : str
            The directory in the package to pass to ``-I``, such as ``"include"``.

        Returns
        -------
        Headers
            The texts, by their paths below the directory.

        Raises
        ------
        ValueError
            If the package does not exist, or a header is not text.
        OSError
            If it does not have this directory.
        TypeError
            If `package` or a part of the path is not a str.
        """
        import importlib.resources

        for part in (package, *path):
            if not isinstance(part, str) or not part or "\0" in part:
                raise TypeError(
                    "package and path must be str, names of a package and of directories in it "
                    f"(got {spell(part)})"
                )
        try:
            root = importlib.resources.files(package).joinpath(*path)
        except (ImportError, UnicodeEncodeError) as error:
            raise ValueError(f"headers: there is no package {package!r}: {error}") from error
        if not root.is_dir():
            raise NotADirectoryError(f"headers: package {package!r} has no directory {path!r}")
        return cls(dict(_walk(root, "")))

    def __getitem__(self, name: str) -> str:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __or__(self, other: Mapping[str, str]) -> Headers:
        return Headers({**self, **other})

    def __repr__(self) -> str:
        return f"<culaunch.compiling.Headers {len(self)} files>"


def as_headers(headers: Mapping[str, str] | None) -> Headers:
    """Check the argument ``headers=``."""
    if headers is None:
        return _NONE
    if isinstance(headers, Headers):
        return headers
    if not isinstance(headers, Mapping):
        raise TypeError(
            "headers must map names to text, or be culaunch.compiling.Headers "
            f"(got {type(headers).__name__})"
        )
    return Headers(headers)


def _walk(directory: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for child in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if child.name.startswith(".") or child.name == "__pycache__":
            continue
        name = prefix + child.name
        if child.is_dir():
            yield from _walk(child, f"{name}/")
        elif _is_header(child.name):
            yield name, _decoded(child.read_bytes(), name)


def _is_header(leaf: str) -> bool:
    return not leaf.startswith(".") and (leaf.endswith(_SUFFIXES) or "." not in leaf)


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"headers: {path!r} is not UTF-8 text ({error.reason})") from None


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"headers: a name must be a str (got {spell(name)})")
    parts = name.split("/")
    if not name or "\\" in name or not is_text(name) or {"", ".", ".."} & set(parts):
        raise ValueError(
            f"headers: {name!r} must be the relative name that #include uses, such as 'my/math.h'"
        )
    return name


def _checked_text(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"headers[{name!r}] must be its text, a str (got {type(text).__name__})")
    if "\0" in text:
        raise ValueError(f"headers[{name!r}] is not text: it has a null byte")
    if not is_text(text):
        raise ValueError(f"headers[{name!r}] is not text: it has a lone surrogate")
    return text


_NONE = Headers()
