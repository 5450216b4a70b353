"""Where the pieces of CUDA are: a toolkit that was chosen, pip's packages, the usual place."""

from __future__ import annotations

import importlib.util
import os
import shutil

USUAL_HOME = "/usr/local/cuda"


def chosen_homes() -> list[str]:
    """Return the toolkits that the environment names."""
    return [home for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]


def pip_folders(*names: str) -> list[str]:
    """Return the folders of pip's packages of NVIDIA, there or not.

    Parameters
    ----------
    *names : str
        CUDA 13 and later have one folder for all packages (``cu13``), CUDA 12 one for each.
    """
    # A namespace package, which may lie in several directories: one for the system and one for the
    # user.
    try:
        spec = importlib.util.find_spec("nvidia")
    except ImportError:  # a finder may refuse
        spec = None
    roots = (spec.submodule_search_locations or ()) if spec else ()
    return [os.path.join(root, name) for root in roots for name in names]


def find_nvcc() -> str | None:
    """Return the one nvcc that everything here uses.

    The order is ``CUDA_HOME`` or ``CUDA_PATH``, PATH, pip, the usual place.
    """
    # The environment comes before PATH: setting CUDA_HOME is a deliberate choice. None means PATH.
    for place in (*(os.path.join(home, "bin") for home in chosen_homes()), None):
        if program := shutil.which("nvcc", path=place):
            return program
    places = (*pip_folders("cu13/bin", "cuda_nvcc/bin"), os.path.join(USUAL_HOME, "bin"))
    return next(filter(None, (shutil.which("nvcc", path=place) for place in places)), None)
