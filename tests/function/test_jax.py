"""Which JAX there is, and its interface."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import culaunch as cl

pytestmark = pytest.mark.needs("jax")

jax = pytest.importorskip("jax")


@pytest.mark.parametrize(
    "header",
    ["", "#define XLA_FFI_API_MAJOR 1\nXLA_FFI_DeviceOrdinal_Get", "#define XLA_FFI_API_MAJOR 0"],
    ids=["none", "another", "without ordinals"],
)
def test_jax_that_is_too_old(monkeypatch, tmp_path, header):
    from culaunch._jax import package

    folder = tmp_path / "xla" / "ffi" / "api"
    folder.mkdir(parents=True)
    (folder / "c_api.h").write_text(f"{header}\n#define XLA_FFI_API_MINOR 1\n")
    monkeypatch.setattr(package, "_is_registered", False)
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    with pytest.raises(cl.MissingDependencyError, match=r"needs JAX 0\.6 or newer, .*'jax>=0\.6'"):
        package.jax_package()


@pytest.mark.slow
@pytest.mark.needs("g++")
def test_the_headers_are_as_they_were_read():
    """Every structure of csrc/xla/abi.h lies in memory as the header of this JAX has it."""
    here = Path(__file__)
    abi = here.parents[2] / "csrc" / "xla" / "abi.h"
    command = [
        "g++", "-std=c++17", "-fsyntax-only", f'-DABI="{abi}"', f"-I{jax.ffi.include_dir()}",
        str(here.with_name("xla_layouts.cpp")),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
