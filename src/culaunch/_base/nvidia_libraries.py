"""NVIDIA's compilers as libraries: where they are searched, and the error without them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from culaunch._base.cuda_places import pip_folders
from culaunch._errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PIP = "python -m pip install 'culaunch[compile]'"


@contextlib.contextmanager
def needed(
    purpose: str, library: str, set_folders: Callable[[Sequence[str]], None], command: str = PIP
) -> Iterator[None]:
    """Search this Python's packages first, and complete the error if there is no such library.

    Parameters
    ----------
    purpose : str
        What needs the library.
    library : str
        ``"NVRTC"``, ``"nvFatbin"``, ``"nvJitLink"`` or ``"CUPTI"``.
    set_folders : callable
        ``_core.set_pip_folders``.
    command : str, optional
        The command that installs it.
    """
    set_folders(pip_folders(""))
    try:
        yield
    except MissingDependencyError as error:
        raise MissingDependencyError(f"{purpose} needs {library}. {error}: {command}") from None
