"""Text other than Python, in files beside the module that uses it: CUDA C++, C."""

from __future__ import annotations

import functools


@functools.cache
def data_text(module: str, name: str) -> str:
    """Return the text of a file that is part of the package; it is read once.

    Parameters
    ----------
    module : str
        The ``__name__`` of the module that asks.
    name : str
        The file, from that module's folder, with slashes.
    """
    from importlib.resources import files

    return files(module.rpartition(".")[0]).joinpath(name).read_text("utf-8")
