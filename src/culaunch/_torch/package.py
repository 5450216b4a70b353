"""PyTorch, imported only when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from culaunch._errors import MissingDependencyError


def torch_package() -> Any:
    """Return the module ``torch``.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        if error.name != "torch":
            raise
        raise MissingDependencyError(
            "torch_op needs PyTorch: python -m pip install torch"
        ) from None
