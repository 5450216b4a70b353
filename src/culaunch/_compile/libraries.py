"""NVIDIA's compilers as libraries: where they are searched, and the error without them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from culaunch._base.cuda_places import pip_folders
from culaunch._core import set_pip_folders
from culaunch._errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

PIP = "python -m pip install 'culaunch[compile]'"


@contextlib.contextmanager
def needed(purpose: str, library: str) -> Iterator[None]:
    """Search this Python's packages first, and complete the error if there is no such library.

    Parameters
    ----------
    purpose : str
        What needs the library.
    library : str
        ``"NVRTC"``, ``"nvFatbin"`` or ``"nvJitLink"``.
    """
    set_pip_folders(pip_folders(""))
    try:
        yield
    except MissingDependencyError as error:
        raise MissingDependencyError(f"{purpose} needs {library}. {error}: {PIP}") from None
