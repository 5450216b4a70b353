"""A project as engines are: no exceptions, unity builds, plugins, kernels compiled at run time."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("cmake", "ninja", "g++", "nvrtc"),
]


def clang():
    for name in ("clang++", *(f"clang++-{version}" for version in range(22, 13, -1))):
        if found := shutil.which(name):
            return found
    pytest.skip("needs clang++")


@pytest.mark.parametrize(
    ("compiler", "standard", "way"),
    [("g++", "20", "find_package"), ("clang", "17", "FetchContent")],
)
def test_an_engine(cmake, configure, run_recorded, tmp_path, monkeypatch, compiler, standard, way):
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "cache"))
    source = Path(shutil.copytree(HERE / "engine", tmp_path / "an engine"))
    build = tmp_path / "build"
    words = [f"-DCMAKE_CXX_STANDARD={standard}", "-DCULAUNCH_NVCC=OFF"]
    words.append(f"-DCMAKE_CXX_COMPILER={clang() if compiler == 'clang' else compiler}")
    if way == "FetchContent":
        words += ["--no-warn-unused-cli", f"-DENGINE_FETCHES={HERE.parents[1]}"]
    configure(source, build, *words)
    cmake("--build", build)
    assert "no work to do" in cmake("--build", build)
    if compiler == "g++":  # as it is installed
        cmake("--install", build, "--prefix", tmp_path / "installed")
        program = tmp_path / "installed" / "bin" / "engine"
        plugins = tmp_path / "installed" / "lib"
        exported = plugins / "cmake" / "engine" / "engine.cmake"
        assert "$<LINK_ONLY:engine::culaunch_jit>" in exported.read_text()
        assert (plugins / "libculaunch_jit.a").exists()
    else:
        program, plugins = build / "engine", build
    words = (plugins / "libplugin.so", plugins / "libthreaded.so", "20")
    record = run_recorded(program, *words)
    launched = [line.split(" args ")[0] for line in record if line.startswith("launch")]
    assert launched[0].startswith("launch _Z5shadeIfLi4EEvPT_ device=0 grid=1,1,1 block=32,1,1")
    assert [line.split()[1] for line in launched[1:]] == ["plugin"] * 20 + ["threaded"]
    # Of 22 modules the shaders' stays.
    assert sum(line.startswith("load ") for line in record) == 22
    assert sum(line.startswith("unload") for line in record) == 21
    entries = {path.stat().st_ino for path in (tmp_path / "cache").glob("*.entry")}
    assert len(entries) == 4
    # The next run finds all in the cache, and never loads NVRTC.
    run_recorded(program, *words)
    assert {path.stat().st_ino for path in (tmp_path / "cache").glob("*.entry")} == entries
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", plugins / "libthreaded.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert " Run" in shown
    # Templates of the standard library over our types may be there: they carry the version.
    assert not re.search(r" (_ZNK?8culaunch|culaunch)", shown)
