"""Compilers and the fake driver for tests of the C++ header. Everything is built once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cuda_headers import cuda_include
from runs import alone_in, folder_of_the_run

import culaunch as cl
from culaunch._compile.nvrtc import loaded_library

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
OF_GXX = ("-Wuseless-cast", "-fno-gnu-unique")


@pytest.fixture(scope="session")
def cuda_headers() -> str:
    return cuda_include()


@pytest.fixture(scope="session")
def nvrtc() -> str:
    """Return the NVRTC that Python compiles with."""
    return loaded_library()


@pytest.fixture(scope="session")
def gxx() -> str:
    return shutil.which("g++") or pytest.skip("needs g++")


@pytest.fixture(scope="session")
def clang() -> str:
    for name in ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1))):
        if found := shutil.which(name):
            return found
    pytest.skip("needs clang++")


@pytest.fixture(scope="session")
def sanitizing(request, gxx, tmp_path_factory) -> str:
    """Return the name of the compiler for sanitizers: clang takes half of g++'s time, if it can."""
    place = tmp_path_factory.mktemp("sanitizing")
    (place / "none.cpp").write_text("int main() {}\n")
    try:
        command = [request.getfixturevalue("clang"), "-fsanitize=address,undefined", "none.cpp"]
    except pytest.skip.Exception:
        return "gxx"
    done = subprocess.run(command, cwd=place, capture_output=True, check=False)
    return "clang" if done.returncode == 0 else "gxx"


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Compile C++ files; the flags come first. Return the output.

    One process of a run compiles for all.
    """
    folder = folder_of_the_run(tmp_path_factory) / "cpp"

    def run(compiler: str, output: str, *words: str | Path) -> Path:
        # An optimizer takes twice as long. Tests that are about it say which level.
        command = [compiler, "-std=c++17", "-O0", "-g1", f"-I{cl.cpp.include_dir()}"]
        command += ["-isystem", cuda_include(), *map(str, words), "-pthread"]
        key = hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]
        with alone_in(folder / key) as place:
            target = place / output
            # Nothing is there if a file was only looked at, or did not compile.
            if not target.exists():
                command += ["-o", str(target)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr
                assert done.stderr == ""
        return target

    return run


@pytest.fixture(scope="session")
def build_thin(build):
    """Compile as ``build`` does, with what the header only declares in a file of its own."""

    def run(compiler: str, output: str, *words: str | Path) -> Path:
        flags = ("-DCULAUNCH_HEADER_ONLY=0", *(word for word in words if str(word)[0] == "-"))
        source = Path(cl.cpp.cmake_dir()) / "culaunch.cpp"
        ours = (word for word in flags if word not in ("-shared", "-c"))
        part = build(compiler, "culaunch.o", "-c", "-fPIC", *ours, source)
        return build(compiler, output, "-DCULAUNCH_HEADER_ONLY=0", *words, part)

    return run


@pytest.fixture(scope="session")
def jit_part(build):
    """Compile what ``culaunch/jit.h`` declares, which takes long: once for a compiler and flags."""
    built: dict[tuple[str, ...], Path] = {}

    def run(compiler: str, *flags: str) -> Path:
        source = Path(cl.cpp.cmake_dir()) / "culaunch_jit.cpp"
        key = (compiler, *flags)
        if key not in built:
            words = ("-c", "-fPIC", *WARNINGS, *flags, source)
            built[key] = build(compiler, "jit_part.o", *words)
        return built[key]

    return run


@pytest.fixture(scope="session")
def jit_tool(build, jit_part, gxx) -> Path:
    """A program that does what it is asked line by line."""
    part = jit_part(gxx, *OF_GXX)
    # Two files of a program may bring what the header declares.
    again = part.with_suffix(".again.o")
    with alone_in(part.parent):
        shutil.copy(part, again)
    words = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wuseless-cast", "-Werror")
    return build(gxx, "jit_tool", *words, HERE / "jit_tool.cpp", part, again, "-ldl")


@pytest.fixture(scope="session")
def fake_driver(build, gxx) -> Path:
    # A function of the table that it lacks is an error here.
    flags = ["-Wall", "-Wextra", "-Wl,--no-undefined"]
    *others, last = sorted((HERE.parents[1] / "drivers" / "fake").glob("*.cpp"))
    # As one unit, whose headers are read once.
    sources = [word for source in others for word in ("-include", source)] + [last]
    return build(gxx, "libfake.so", "-shared", "-fPIC", *flags, *sources, "-ldl")


@pytest.fixture
def run_cpp(tmp_path, fake_driver):
    """Run a program on the fake driver."""

    def run(program: Path, *arguments: str | Path) -> str:
        environment = {
            **os.environ,
            "CULAUNCH_DRIVER": str(fake_driver),
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        environment.pop("CULAUNCH_DRIVER_TABLE", None)
        done = subprocess.run(
            [program, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == ""
        return done.stdout

    return run
