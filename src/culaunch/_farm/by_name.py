"""What workers import: an object at the top of a module, by its name."""

from __future__ import annotations

import functools
import importlib
from typing import Any


def name_of(what: str, value: Any) -> tuple[str, str]:
    """Return the module and the name that a worker finds a decorated function by.

    Parameters
    ----------
    what : str
        What messages call it.
    value
        A function, whose ``__module__`` and ``__qualname__`` say where it was defined.

    Raises
    ------
    ValueError
        If it is not at the top of a module, or something else is under its name.
    """
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    # "<locals>" in its name: it is inside of a function, and nobody can import it.
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        raise ValueError(
            f"{what} must be at the top of a module to be compiled by an executor, whose workers "
            f"import it (got {name or value!r:.80})"
        )
    return module, name


def find(module: str, name: str) -> Any:
    """Return what has a name in a module.

    Raises
    ------
    ValueError
        If there is no such module here, or no such name in it.
    """
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"this worker finds no {module}.{name} ({error}): define it in a module that workers "
            "can import, not in the program itself"
        ) from error
