"""Print the folder of cuda.h: of pip's nvidia-cuda-runtime, else of conda or a toolkit."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys


def candidates() -> list[pathlib.Path]:
    """Folders to look in, best first."""
    found = []
    for entry in sys.path:
        nvidia = pathlib.Path(entry or ".") / "nvidia"
        found += sorted(nvidia.glob("cu[0-9]*/include"), reverse=True)
        found.append(nvidia / "cuda_runtime" / "include")
    found += [
        pathlib.Path(os.environ[name]) / "include"
        for name in ("CUDA_HOME", "CUDA_PATH")
        if name in os.environ
    ]
    # Conda's packages of CUDA.
    for name in ("PREFIX", "CONDA_PREFIX"):
        if name in os.environ:
            found += sorted(pathlib.Path(os.environ[name]).glob("targets/*/include"))
    nvcc = shutil.which("nvcc")
    if nvcc:
        found.append(pathlib.Path(nvcc).resolve().parent.parent / "include")
    found.append(pathlib.Path("/usr/local/cuda/include"))
    return found


if __name__ == "__main__":
    for folder in candidates():
        if (folder / "cuda.h").is_file():
            print(folder)
            break
