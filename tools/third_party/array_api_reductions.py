"""NumPy's namespace with culaunch's reductions, for the tests of the array API standard.

Put this folder on PYTHONPATH, and run ``pytest`` in a copy of array-api-tests, with its submodule,
under ``ARRAY_API_TESTS_MODULE=array_api_reductions``.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from culaunch import elementwise as ew

_OWN = ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin")


@functools.cache
def _fused(name: str, options: tuple[tuple[str, Any], ...]) -> Any:
    reduction = getattr(ew, name)
    return ew.fuse(lambda x: reduction(x, **dict(options)))


def _reduce(name: str, x: Any, **options: Any) -> Any:
    return _fused(name, tuple(options.items()))(np.asarray(x))


def _vector_norm(x: Any, **options: Any) -> Any:
    if options.get("ord", 2) not in (1, 2, np.inf, -np.inf):  # culaunch refuses them
        return np.linalg.vector_norm(x, **options)
    return _reduce("norm", x, **options)


def __getattr__(name: str) -> Any:
    return getattr(np, name)


globals().update({name: functools.partial(_reduce, name) for name in _OWN})
linalg = SimpleNamespace(**vars(np.linalg) | {"vector_norm": _vector_norm})
