"""What workers import: an object at the top of a module, by its name."""

from __future__ import annotations

import functools
import importlib
from typing import Any


def name_of(what: str, value: Any) -> tuple[str, str]:
    """Return the module and the name by which a worker finds a decorated function.

    Parameters
    ----------
    what : str
        Its name in messages.
    value
        A function, whose ``__module__`` and ``__qualname__`` say where it was defined.

    Raises
    ------
    ValueError
        If it is not at the top of a module, or something else is under its name.
    """
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    # "<locals>" in its name means that it is inside a function, and cannot be imported.
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        raise ValueError(
            f"{what} must be at the top level of a module, where the workers of an executor "
            f"import it (got {name or value!r:.80})"
        )
    return module, name


def find(module: str, name: str) -> Any:
    """Return the object with a name in a module.

    Raise ValueError if this process cannot import the module, or the module does not have the name.
    """
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"this worker cannot find {module}.{name} ({error}): define it in a module that "
            "workers can import, not in the program itself"
        ) from error
