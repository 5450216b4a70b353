"""Readers of what embedding writes; the stand-in images and compilers are in object_fixtures."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for object_fixtures

from object_fixtures import compile_object, cxx, make_stand_in_cubin, stand_in_cubin  # noqa: F401


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cubin"
    path.write_bytes(make_stand_in_cubin())
    return path


@pytest.fixture(scope="session")
def clang() -> str:
    for name in ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1))):
        if found := shutil.which(name):
            return found
    pytest.skip("needs clang++")


@pytest.fixture(scope="session")
def readelf():
    if not shutil.which("readelf"):
        pytest.skip("needs readelf")

    def run(path: Path, *options: str) -> str:
        done = subprocess.run(
            ["readelf", "-W", *options, str(path)], capture_output=True, text=True, check=True
        )
        # readelf says what it does not like on stderr and goes on.
        assert done.stderr == ""
        return done.stdout

    return run


@pytest.fixture(scope="session")
def symbols_of(readelf):
    """Return ``{name: (value, size, type, binding, visibility, section)}`` of an object."""

    def read(path: Path) -> dict[str, tuple[int, int, str, str, str, str]]:
        result = {}
        for line in readelf(path, "--symbols").splitlines():
            match = re.match(
                r"\s*\d+: ([0-9a-f]{16})\s+(\S+) (\S+)\s+(\S+)\s+(\S+)\s+(\S+) (\S+)$", line
            )
            if match:
                value, size, kind, bind, visibility, section, name = match.groups()
                result[name] = (int(value, 16), int(size, 0), kind, bind, visibility, section)
        return result

    return read


@pytest.fixture(scope="session")
def link_library():
    """Link objects to a shared library; a warning of the linker is a failure."""

    def run(compiler: str, output: Path, *objects: Path) -> Path:
        done = subprocess.run(
            [compiler, "-shared", "-Wl,--fatal-warnings", "-o", str(output), *map(str, objects)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return output

    return run
