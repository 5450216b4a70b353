"""The one nvcc that everything here uses."""

from __future__ import annotations

import os
import shutil


def find_nvcc() -> str | None:
    """Return nvcc: that of ``CUDA_HOME`` or ``CUDA_PATH``, of PATH, of pip, of the usual place."""
    homes = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    for place in (*(os.path.join(home, "bin") for home in homes if home), None):
        if program := shutil.which("nvcc", path=place):
            return program
    return _pip_nvcc() or shutil.which("nvcc", path="/usr/local/cuda/bin")


def _pip_nvcc() -> str | None:
    try:
        from cuda.pathfinder import (  # type: ignore[import-untyped]
            find_nvidia_binary_utility,
        )
    except ImportError:
        return None
    path = find_nvidia_binary_utility("nvcc")
    return None if path is None else str(path)
