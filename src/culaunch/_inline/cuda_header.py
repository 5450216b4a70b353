"""Where ``cuda.h`` is."""

from __future__ import annotations

import functools
import os
import shutil

from culaunch._base.cuda_places import USUAL_HOME, chosen_homes, pip_folders
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
    # First the user's choice, then pip's packages, then PATH, and then the usual places: the same
    # order as for the compilers.
    homes = [*chosen_homes(), *pip_folders("cu13", "cuda_runtime")]
    if nvcc := shutil.which("nvcc"):
        homes.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    return [os.path.join(home, "include") for home in (*homes, USUAL_HOME, "/usr")]
