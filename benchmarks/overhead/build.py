"""Compile the C and C++ that the benchmark needs, once per content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FAKE_DRIVER = ROOT / "drivers" / "fake"
# The only header of culaunch that the driver needs: the list of functions.
TABLE = ("culaunch/driver_table.h", "culaunch/launch_options.h", "culaunch/version.h")


class BuildError(RuntimeError):
    """A compiler that is missing or that failed, with its command and output."""


def build_library(
    name: str,
    sources: Mapping[str, str],
    flags: Sequence[str] = (),
    libraries: Sequence[str] = (),
) -> Path:
    """Compile sources to a shared library, or return the cached one of an earlier run.

    The key is the sources, the flags and the compiler's version, so a cached file is never stale.
    It is published by rename, so concurrent runs never see half a file.

    Parameters
    ----------
    name : str
        The file name of the library.
    sources : Mapping[str, str]
        File name to text; all ``.c`` (or ``.cpp``) files are compiled.
    flags, libraries : sequence of str
        Compiler flags before, and linker flags after the sources.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    BuildError
        If there is no compiler, or it rejects a source.
    """
    compiler = _compiler(cxx=any(file.endswith(".cpp") for file in sources))
    arguments = ["-O2", "-shared", "-fPIC", *flags]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    identity = repr((sorted(sources.items()), arguments, libraries, version.stdout))
    target = _cache() / hashlib.sha256(identity.encode()).hexdigest()[:24] / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        for file, text in sources.items():
            Path(scratch, file).parent.mkdir(exist_ok=True)
            Path(scratch, file).write_text(text)
        units = [str(Path(scratch, file)) for file in sources if file.endswith((".c", ".cpp"))]
        output = Path(scratch, name)
        # Several are one unit, whose headers are read once.
        words = [word for unit in units[:-1] for word in ("-include", unit)]
        command = [compiler, *arguments, *words, units[-1], "-o", str(output), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(
                f"{' '.join(command)}\nexited with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        output.replace(target)
    return target


def build_null_driver() -> Path:
    """Build the fake driver without its log; returns the path of its libcuda.so.1."""
    sources = {path.name: path.read_text() for path in sorted(FAKE_DRIVER.iterdir())}
    sources |= {name: (ROOT / "include" / name).read_text() for name in TABLE}
    flags = ["-std=c++17", "-DFAKE_DRIVER_LOG=0", "-Wl,-soname,libcuda.so.1,--no-undefined"]
    return build_library(
        "libcuda.so.1",
        sources,
        [*flags, f"-I{cuda_include()}"],
        ["-ldl"],
    )


def build_twin() -> Path:
    """Build the C loops that every ratio is taken against."""
    return build_library(
        "twin.so",
        {"twin.c": (HERE / "twin.c").read_text()},
        ["-std=gnu11", f"-I{cuda_include()}"],
        ["-ldl"],
    )


def cuda_include(header: str = "cuda.h") -> Path:
    """Find the folder of CUDA's headers: pip's first, then a toolkit; it has the one named."""
    folders: list[Path] = []
    spec = find_spec("nvidia")
    for location in spec.submodule_search_locations or () if spec else ():
        folders += sorted(Path(location).glob("cu*/include"), reverse=True)
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders += [Path(toolkit, "include") for toolkit in toolkits if toolkit]
    for folder in folders:
        if (folder / header).exists():
            return folder
    raise BuildError(
        f"no {header} in {', '.join(map(str, folders))}: pip install nvidia-cuda-runtime "
        "nvidia-cuda-crt, or set CUDA_HOME to a toolkit"
    )


def _compiler(*, cxx: bool) -> str:
    names = [os.environ.get("CXX"), "c++", "g++"] if cxx else [os.environ.get("CC"), "cc", "gcc"]
    for name in names:
        if name and (found := shutil.which(name)):
            return found
    raise BuildError(f"no {'C++' if cxx else 'C'} compiler (set {'CXX' if cxx else 'CC'})")


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "culaunch-benchmarks")
