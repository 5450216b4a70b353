"""Configure, build and run outside projects."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from runs import alone_in, folder_of_the_run

import culaunch as cl

HERE = Path(__file__).parent
COMPILE_ONCE = HERE.parent / "shared" / "compile_once.py"
FAKE_DRIVER = HERE.parents[1] / "drivers" / "fake"


@pytest.fixture(scope="session")
def cmake(tmp_path_factory):
    """Run cmake with words; return all that it said. A warning is a failure."""
    program = shutil.which("cmake") or pytest.skip("needs cmake")
    objects = folder_of_the_run(tmp_path_factory) / "objects"
    launcher = [sys.executable, "-ES", COMPILE_ONCE, objects, cl.cpp.cmake_dir()]
    environment = {
        **os.environ,
        "CMAKE_BUILD_PARALLEL_LEVEL": "2",
        "CMAKE_CXX_COMPILER_LAUNCHER": ";".join(map(str, launcher)),
    }

    def run(*words: str | Path, fails: bool = False) -> str:
        done = subprocess.run(
            [program, *map(str, words)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        said = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, said
        if not fails:
            assert "warning" not in said.lower(), said
        return said

    return run


@pytest.fixture(scope="session")
def configure(cmake):
    """Configure a project with this culaunch and this Python."""

    def run(source: Path, build: Path, *words: str, generator: str = "Ninja", **options) -> str:
        if generator == "Ninja" and not shutil.which("ninja"):
            pytest.skip("needs ninja")
        own = [f"-Dculaunch_DIR={cl.cpp.cmake_dir()}", f"-DCULAUNCH_PYTHON={sys.executable}"]
        return cmake("-S", source, "-B", build, "-G", generator, *own, *words, **options)

    return run


@pytest.fixture(scope="session")
def fake_driver(cmake, configure, tmp_path_factory) -> Path:
    """The driver that runs nothing and writes down everything, built by a project of its own."""
    folder = folder_of_the_run(tmp_path_factory) / "fake_driver"
    library = folder / "build" / "libfake.so"
    with alone_in(folder):
        if not library.exists():
            _build_fake_driver(folder, cmake, configure)
    return library


def _build_fake_driver(folder, cmake, configure) -> None:
    sources = " ".join(f'"{path}"' for path in sorted(FAKE_DRIVER.glob("*.cpp")))
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(fake LANGUAGES CXX)\n"
        "find_package(culaunch REQUIRED)\n"
        "set(CMAKE_UNITY_BUILD ON)\nset(CMAKE_UNITY_BUILD_BATCH_SIZE 0)\n"
        f"add_library(fake SHARED {sources})\n"
        "target_link_libraries(fake PRIVATE culaunch::culaunch ${CMAKE_DL_LIBS})\n"
    )
    configure(folder, folder / "build")
    cmake("--build", folder / "build")


@pytest.fixture
def run_recorded(fake_driver, tmp_path):
    """Run a program on the fake driver; return the lines of its log."""

    def run(program: Path, *arguments: str | Path, **environment: str) -> list[str]:
        log = tmp_path / "record"
        log.unlink(missing_ok=True)
        done = subprocess.run(
            [program, *map(str, arguments)],
            env={
                **os.environ,
                "CULAUNCH_DRIVER": str(fake_driver),
                "FAKE_DRIVER_LOG_FILE": str(log),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return log.read_text().splitlines()

    return run
