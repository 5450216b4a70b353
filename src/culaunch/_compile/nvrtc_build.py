"""Identify the build of NVRTC in use without loading it, which takes a tenth of a second."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re

from culaunch._base.cuda_places import pip_folders
from culaunch._core import library_identity as identity_of
from culaunch._errors import MissingDependencyError

PIP = "python -m pip install 'culaunch[compile]'"
# The first version of the bindings with all of NVRTC, nvFatbin and nvJitLink that needs no driver.
_BINDINGS = (13, 2)

# The places of pip's packages: CUDA 13 and later, CUDA 12.
_PIP_PLACES = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")
_BUILTINS = re.compile(r"libnvrtc-builtins\.so\.(\d+\.\d+)")


library_identity = functools.cache(identity_of)


def library_version(path: str) -> str | None:
    """Return the version of the NVRTC at a path, ``"13.5"``, from the name of its builtins."""
    names = os.listdir(os.path.dirname(path))
    found = {match[1] for name in names if (match := _BUILTINS.fullmatch(name)) is not None}
    return found.pop() if len(found) == 1 else None


def expected_library() -> str | None:
    """Return the NVRTC that would be loaded, if pip's packages leave no doubt.

    The code that loads it later checks that it is the same one.
    """
    places = pip_folders(*_PIP_PLACES)
    found = {os.path.realpath(path) for path in places if os.path.isfile(path)}
    # With two installations, the loader decides which one is used, so it must be loaded to find
    # out.
    return found.pop() if len(found) == 1 else None


def missing(purpose: str, library: str, error: Exception) -> MissingDependencyError:
    """Make the error for one of NVIDIA's libraries, with a command that helps.

    Parameters
    ----------
    purpose : str
        What needs the library.
    library : str
        ``"NVRTC"``, ``"nvFatbin"`` or ``"nvJitLink"``.
    error : Exception
        The error of the bindings.
    """
    said = " ".join(str(error).splitlines()[:1])
    return MissingDependencyError(
        f"{purpose} needs {library}, which cannot be loaded ({said}): {_command(library, error)}"
    )


def _command(library: str, error: Exception) -> str:
    try:
        version = importlib.metadata.version("cuda-bindings")
    except importlib.metadata.PackageNotFoundError:
        return PIP
    major, minor = (int(part) for part in [*re.findall(r"\d+", version), "0", "0"][:2])
    if major < _BINDINGS[0]:
        # Stay with CUDA 12 if it is installed.
        if isinstance(error, ImportError):
            return f"python -m pip install --upgrade 'cuda-bindings<{major + 1}'"
        package = {"NVRTC": "cuda-nvrtc"}.get(library, library.lower())
        return f"python -m pip install nvidia-{package}-cu{major}"
    if (major, minor) < _BINDINGS:
        wanted = ".".join(map(str, _BINDINGS))
        return f"python -m pip install --upgrade 'cuda-bindings>={wanted}' (this is {version})"
    return PIP
