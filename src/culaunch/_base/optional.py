"""Packages that not every installation has: an import, or an error with the pip command."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from culaunch._errors import MissingDependencyError


def optional(package: str, purpose: str, command: str) -> Any:
    """Return a package that a call needs.

    Parameters
    ----------
    package : str
        The name to import.
    purpose : str
        The feature that needs it, as the beginning of a sentence.
    command : str
        The requirement for pip.

    Raises
    ------
    MissingDependencyError
        If it is not installed. One that is installed and fails as it is loaded keeps its error.
    """
    # Called at many launches, so use a dict lookup: the import system takes a lock.
    found = sys.modules.get(package)
    if found is not None:
        return found
    try:
        return importlib.import_module(package)
    except ImportError as error:
        # It is installed, but something that it needs is not: report that.
        if error.name is not None and not f"{package}.".startswith(f"{error.name}."):
            raise
        raise MissingDependencyError(
            f"{purpose} needs {package}: python -m pip install {command}", name=package
        ) from error


def is_installed(package: str) -> bool:
    """Return whether a package can be found; it is not imported."""
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except ImportError:  # an import hook may also refuse a name
        return False
