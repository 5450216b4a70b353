"""The folder of cuda.h, without asking culaunch: a package of pip, or an installed toolkit."""

import importlib.util
import os
from pathlib import Path

import pytest


def cuda_include() -> str:
    """Return the folder that has ``cuda.h``, or skip the test."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for header in Path(place).glob("*/include/cuda.h"):
            return str(header.parent)
    for root in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"):
        if root and (Path(root) / "include" / "cuda.h").exists():
            return str(Path(root) / "include")
    pytest.skip("needs cuda.h")
