"""Which compilers and parts of the CUDA toolkit there are, and where each was found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda_places import find_nvcc
from culaunch._base.nvidia_libraries import needed
from culaunch._core import library_place, set_pip_folders
from culaunch._doctor.diagnosis import Component
from culaunch._doctor.packages import distribution
from culaunch._errors import CompileError, CulaunchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_TOPIC = "compiling"
_SECONDS = 20


def check_compilers() -> Iterator[Component]:
    """Check NVRTC with its headers, nvJitLink, nvFatbin, nvcc, and the compiler of C++."""
    yield _tried("NVRTC", _nvrtc)
    yield from _check_headers()
    yield _tried("nvJitLink", lambda: _library("linking", "nvJitLink"))
    yield _tried("nvFatbin", lambda: _library("a fatbin", "nvFatbin"))
    yield _check_nvcc()
    yield _tried("C++ compiler", _cxx)
    found = distribution("apache-tvm-ffi")
    remedy = "" if found else "python -m pip install apache-tvm-ffi"
    yield Component(_TOPIC, "TVM-FFI", "ok" if found else "missing", found or "", remedy)
    for name in ("CMake", "ninja"):
        yield _check_program(name, name.lower())


def _nvrtc() -> str:
    from culaunch._compile.nvrtc import loaded_library, loaded_version

    version, known = loaded_version()
    archs = ", ".join(f"sm_{number}" for number in known)
    return f"{version}, {loaded_library()}, for {archs}"


def _check_headers() -> Iterator[Component]:
    """Check CUDA's own headers, which belong to one NVRTC."""
    from culaunch._compile.nvrtc import Nvrtc

    commands = {
        "cuda_fp16.h": "nvidia-cuda-runtime",
        "cuda/std/type_traits": "nvidia-cuda-cccl",
    }
    toolkit: Any = Nvrtc().toolkit
    try:
        found = {header: toolkit.find(header) for header in commands}
    # Loading it failed, and the line of NVRTC has the reason.
    except CulaunchError:
        return  # already reported for NVRTC
    for header, package in commands.items():
        path = found[header]
        state, remedy = ("ok", "") if path else ("missing", f"python -m pip install {package}")
        detail = path or "; ".join(toolkit.notes)
        yield Component(_TOPIC, header, state, detail, remedy)


def _library(purpose: str, name: str) -> str:
    with needed(purpose, name, set_pip_folders):
        # This loads the library, and finds one that exists but does not load.
        return ", ".join(library_place(name))


def _check_nvcc() -> Component:
    path = find_nvcc()
    if path is None:
        return Component(
            _TOPIC,
            "nvcc",
            "missing",
            "needed only for backend='nvcc'",
            "python -m pip install nvidia-cuda-nvcc nvidia-cuda-crt",
        )
    return _tried("nvcc", lambda: f"{_version([path])}, {path}")


def _check_program(name: str, program: str) -> Component:
    """Look in PATH, as a build does, and where pip puts programs of this Python."""
    path = shutil.which(program) or shutil.which(program, path=sysconfig.get_path("scripts"))
    if path is None:
        return Component(_TOPIC, name, "missing", "", f"python -m pip install {program}")
    return _tried(name, lambda: f"{_version([path])}, {path}")


def _cxx() -> str:
    from culaunch._inline.toolchain import find_cxx

    words = find_cxx()
    return f"{_version(words)}, {' '.join(words)}"


def _version(command: list[str]) -> str:
    """Return the line of ``--version`` that has the version."""
    done = subprocess.run(  # noqa: S603 - what a build would run
        [*command, "--version"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_SECONDS,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    lines = done.stdout.splitlines()
    return next(
        (line for line in lines if "release" in line), lines[0] if lines else ("unknown version")
    )


def _tried(name: str, look: Callable[[], str]) -> Component:
    """Return the result of a check: missing if it is not installed, broken if it does not work."""
    try:
        return Component(_TOPIC, name, "ok", look())
    # Missing software is not a fault of the machine: most programs do not need it.
    except (ImportError, CompileError, FileNotFoundError) as error:
        return Component(_TOPIC, name, "missing", str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
        return Component(_TOPIC, name, "broken", f"{type(error).__name__}: {error}")
