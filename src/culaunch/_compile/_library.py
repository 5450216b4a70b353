"""Which build of NVRTC is in use, told without loading it (which takes a tenth of a second)."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re

PIP = "pip install 'culaunch[compile]'"

# Where pip's packages put it: CUDA 13 and later, CUDA 12.
_PIP_PLACES = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")
# The build id and everything else that the linker wrote about a build lies within this.
_HEAD_BYTES = 1 << 16
_BUILTINS = re.compile(r"libnvrtc-builtins\.so\.(\d+\.\d+)")


@functools.cache
def library_identity(path: str) -> str:
    """Give what pins one build of NVRTC: version numbers do not, two patch releases share them."""
    digest = hashlib.sha256()
    directory = os.path.dirname(path)
    builtins = sorted(
        name for name in os.listdir(directory) if name.startswith("libnvrtc-builtins")
    )
    for name in (os.path.basename(path), *builtins):
        with open(os.path.join(directory, name), "rb") as file:
            digest.update(file.read(_HEAD_BYTES))
            digest.update(str(os.fstat(file.fileno()).st_size).encode())
    return digest.hexdigest()


def library_version(path: str) -> str | None:
    """Give the version of the NVRTC at a path, ``"13.5"``: its builtins have it in their name."""
    names = os.listdir(os.path.dirname(path))
    found = {match[1] for name in names if (match := _BUILTINS.fullmatch(name)) is not None}
    return found.pop() if len(found) == 1 else None


def expected_library() -> str | None:
    """Give the NVRTC that would be loaded, if pip's packages leave no doubt about that.

    Whoever loads it later checks that it was this one.
    """
    spec = importlib.util.find_spec("nvidia")
    if spec is None or spec.submodule_search_locations is None:
        return None
    places = [
        os.path.join(root, place)
        for root in spec.submodule_search_locations
        for place in _PIP_PLACES
    ]
    found = {os.path.realpath(path) for path in places if os.path.isfile(path)}
    return found.pop() if len(found) == 1 else None
