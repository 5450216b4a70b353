"""Helpers of the tests of embedding and inline C++: stand-in images and a compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def make_stand_in_cubin(size: int = 1000, seed: bytes = b"culaunch") -> bytes:
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
    return make_stand_in_cubin


@pytest.fixture(scope="session")
def cxx() -> str:
    found = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not found:
        pytest.skip("needs g++")
    return found


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
