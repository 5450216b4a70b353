"""The library, and programs that are compiled against cuda.h and run on it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cuda_headers import cuda_include
from emulator_internals import Device, ProgramDriver

sys.path.insert(0, str(Path(__file__).parent))

import culaunch as cl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HERE = Path(__file__).parent
LIBRARY = Path(cl.__file__).parent / "_emulator" / "libcuda" / "libcuda.so.1"


@pytest.fixture(scope="session")
def library() -> Path:
    """Return the file of the library."""
    return LIBRARY


@pytest.fixture(scope="session")
def include() -> Path:
    """Return the folder of cuda.h."""
    return Path(cuda_include())


@pytest.fixture(scope="session")
def driver() -> ProgramDriver:
    """Return the methods that the exported functions call."""
    return ProgramDriver(Device())


@pytest.fixture(scope="session")
def compiled(include: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles a program of this folder, once."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(name: str, *options: str, library: Path = LIBRARY) -> Path:
        program = folder / "".join((Path(name).stem, *options)).replace("/", "_")
        if not program.exists():
            compiler = "g++" if name.endswith(".cpp") else "gcc"
            command = [compiler, "-Wall", "-Wno-unused", "-pthread", f"-I{include}"]
            if name.endswith(".cu"):
                nvcc = shutil.which("nvcc") or "nvcc"
                code = "-gencode=arch=compute_80,code=compute_80"
                command = [nvcc, code, "-Wno-deprecated-gpu-targets", "-cudart=shared"]
            command += [str(HERE / name), *options, "-o", str(program)]
            if not name.endswith(".cu"):
                command.append(str(library))
            subprocess.run(command, check=True, timeout=300)
        return program

    return compiled


@pytest.fixture(scope="session")
def emulate() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs ``culaunch emulate`` and returns what the program wrote."""

    def emulate(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "culaunch", "emulate", *map(str, command)]
        environment = {**os.environ, **variables}
        return subprocess.run(
            words, check=False, capture_output=True, text=True, timeout=300, env=environment
        )

    return emulate


@pytest.fixture(scope="session")
def ptx() -> str:
    """Return the kernel of ``program.h``."""
    text = (HERE / "program.h").read_text().partition("kAdd =")[2].partition(";\n\n")[0]
    return str(ast.literal_eval(f"({text.rstrip().removesuffix(';')})"))


@pytest.fixture(scope="session")
def exported() -> Callable[..., set[str]]:
    """Return a function that says which of some names a library exports.

    In another process: a library that is loaded here would pass for the driver in other tests.
    """

    def exported(library: Path, names: Iterable[str]) -> set[str]:
        program = (
            "import ctypes, sys\n"
            "library = ctypes.CDLL(sys.argv[1])\n"
            "print(*(name for name in sys.stdin.read().split() if hasattr(library, name)))\n"
        )
        command = [sys.executable, "-c", program, str(library)]
        text = "\n".join(names)
        done = subprocess.run(command, check=True, capture_output=True, text=True, input=text)
        return set(done.stdout.split())

    return exported
