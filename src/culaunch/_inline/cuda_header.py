"""Where ``cuda.h`` is."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil

from culaunch._errors import MissingDependencyError


@functools.cache
def cuda_include_dir() -> str:
    """Return the directory with ``cuda.h``: a chosen toolkit's, pip's, or an installed one's."""
    places = _places()
    for place in places:
        if os.path.isfile(os.path.join(place, "cuda.h")):
            return place
    raise MissingDependencyError(
        "cuda.h is needed to compile C++ that launches kernels: python -m pip install "
        f"nvidia-cuda-runtime (looked in {', '.join(places)})"
    )


def _places() -> list[str]:
    roots = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    places = [os.path.join(root, "include") for root in roots if root]
    spec = importlib.util.find_spec("nvidia")
    for package in (spec.submodule_search_locations or ()) if spec else ():
        # CUDA 13 wheels share one directory; older ones have one for each package.
        places += [os.path.join(package, part, "include") for part in ("cu13", "cuda_runtime")]
    if nvcc := shutil.which("nvcc"):
        root = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
        places.append(os.path.join(root, "include"))
    return [*places, "/usr/local/cuda/include", "/usr/include"]
