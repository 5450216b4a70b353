"""What the tests of embedding share: stand-in images, compilers, and readers of their output."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def _stand_in_cubin(size: int = 1000, seed: bytes = b"culaunch") -> bytes:
    """Return bytes that pass for a cubin: its ELF header, then noise that no zero run repeats."""
    header = bytearray(64)
    header[:7] = b"\x7fELF\x02\x01\x01"
    header[16:20] = b"\x02\x00\xbe\x00"
    noise = b""
    while len(noise) < size:
        noise += hashlib.sha512(seed + len(noise).to_bytes(8, "little")).digest()
    return bytes(header) + noise[: size - 64]


@pytest.fixture(scope="session")
def stand_in_cubin():
    return _stand_in_cubin


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cubin"
    path.write_bytes(_stand_in_cubin())
    return path


@pytest.fixture(scope="session")
def cxx() -> str:
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not found:
        pytest.skip("needs g++")
    return found


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
def compile_object():
    """Compile C++ text to an object; a warning is a failure."""

    def run(compiler: str, source: str, output: Path, *flags: str) -> Path:
        done = subprocess.run(
            [compiler, "-x", "c++", "-c", "-", "-o", str(output), "-fPIC", "-O1", *flags],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return output

    return run


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
