"""Which frameworks are installed, and how culaunch reads their arrays."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from culaunch._doctor.diagnosis import Component

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOPIC = "frameworks"
# The package to import, its name for pip, and its arrays.
_FRAMEWORKS = (
    ("numpy", "numpy", "ndarray"),
    ("torch", "torch", "Tensor"),
    ("cupy", "cupy-cuda13x", "ndarray"),
    ("jax", "jax", "_src.array.ArrayImpl"),  # jax.Array is abstract and lacks these methods
    ("numba.cuda", "numba-cuda", "devicearray.DeviceNDArray"),
    ("triton", "triton", ""),
    ("ml_dtypes", "ml_dtypes", ""),
)


def check_frameworks() -> Iterator[Component]:
    """Check each framework: its version, and the ways in which its arrays are read."""
    for package, command, array in _FRAMEWORKS:
        yield _check(package, command, array)


def distribution(name: str) -> str | None:
    """Return the version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _check(package: str, command: str, array: str) -> Component:
    root = package.partition(".")[0]
    try:
        module = importlib.import_module(package)
    except ModuleNotFoundError as error:
        # The package itself is not there; if it is another module, an installed package lacks
        # something.
        if (error.name or "").partition(".")[0] == root:
            return Component(_TOPIC, root, "missing", "", f"python -m pip install {command}")
        return Component(_TOPIC, root, "broken", f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - a package may raise anything as it is imported
        return Component(_TOPIC, root, "broken", f"{type(error).__name__}: {error}")
    version = getattr(importlib.import_module(root), "__version__", "unknown version")
    return Component(_TOPIC, root, "ok", ", ".join([str(version), *_ways(module, array)]))


def _ways(module: Any, array: str) -> list[str]:
    """Return how its arrays are read, the quickest way first."""
    kind = module
    for name in filter(None, array.split(".")):
        kind = getattr(kind, name, None)
    if not array or kind is None:
        return []
    ways = {
        "__dlpack_c_exchange_api__": "DLPack's exchange API",
        "__dlpack__": "DLPack",
        "__cuda_array_interface__": "__cuda_array_interface__",
    }
    return [
        next((text for name, text in ways.items() if hasattr(kind, name)), "no protocol for arrays")
    ]
