"""``culaunch_add_headers``: device headers in a program that compiles while it runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "jit"
pytestmark = pytest.mark.needs("cmake", "ninja", "g++", "nvrtc")
# test_engine.py has the same flags. So the two files compile culaunch once.
FLAGS = ("-DCMAKE_CXX_STANDARD=20", "-DCMAKE_CXX_EXTENSIONS=OFF", "-DCMAKE_CXX_COMPILER=g++")


@pytest.fixture
def project(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "project")
    return tmp_path / "project"


def scales(record):
    return [line.split(" args ")[0] for line in record if line.startswith("launch")]


def test_the_example(project, cmake, configure, run_recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "cache"))
    build = tmp_path / "build"
    configure(project, build, *FLAGS)
    cmake("--build", build)
    where = "launch _Z5scaleIfLi4EEvPT_PKS0_S0_i device=0 grid=4,1,1 block=64,1,1"
    found = scales(run_recorded(build / "jit"))
    assert len(found) == 2
    assert all(line.startswith(where) for line in found)
    entries = list((tmp_path / "cache").glob("*.entry"))
    assert len(entries) == 1
    assert "no work to do" in cmake("--build", build)
    # A header that changes is embedded again, and compiled again.
    header = project / "device" / "numbers.h"
    header.write_text(header.read_text().replace("x + x", "x + x + T(0)"))
    assert "Embedding the headers device_headers" in cmake("--build", build)
    run_recorded(build / "jit")
    assert len(list((tmp_path / "cache").glob("*.entry"))) == 2


HOSTILE = {
    'device/odd "name".h': b'"quotes" \\ and ??= \xff\xfe \x01 1\\n\r\n\ttab\n',
    "device/empty.h": b"",
    "device/long.h": b"// " + b"x" * 100_000,
}
PRINTER = """
#include <culaunch/jit/bundle.h>
#include <cstdio>
CULAUNCH_EMBED_HEADERS(odd);
int main() {
  const culaunch::HeaderBundle bundle = CULAUNCH_HEADERS(odd);
  for (size_t i = 0; i < bundle.count; ++i) {
    std::printf("%s ", bundle.names[i]);
    for (size_t k = 0; k < bundle.sizes[i]; ++k) {
      std::printf("%02x", static_cast<unsigned char>(bundle.texts[i][k]));
    }
    std::printf("\\n");
  }
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(odd LANGUAGES CXX)
find_package(culaunch REQUIRED)
file(GLOB headers include/device/*.h)
add_library(part OBJECT part.cpp)
culaunch_add_headers(part NAME odd FILES ${headers} BASE include)
add_executable(printer main.cpp)
target_link_libraries(printer PRIVATE part culaunch::culaunch)
"""


def test_every_byte_of_a_header_is_there(tmp_path, cmake, configure):
    import subprocess

    source = tmp_path / "odd"
    for name, data in HOSTILE.items():
        path = source / "include" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "main.cpp").write_text(PRINTER)
    (source / "part.cpp").write_text("int Part() { return 1; }\n")
    configure(source, tmp_path / "build")
    cmake("--build", tmp_path / "build")
    said = subprocess.run(
        [tmp_path / "build" / "printer"], capture_output=True, text=True, check=True
    ).stdout
    found = dict(line.rsplit(" ", 1) for line in said.splitlines())
    assert found == {name: data.hex() for name, data in HOSTILE.items()}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("NAME h", "FILES must name at least one header"),
        ("NAME 1h FILES device/numbers.h", "NAME must be a C identifier"),
        ("NAME h FILES device/numbers.h OTHER", "No such file|missing and no known rule|OTHER"),
        ("NAME h FILES device/numbers.h BASE /usr", "is not below BASE"),
    ],
)
def test_what_is_wrong_is_said(project, cmake, configure, tmp_path, words, said):
    import re

    lists = project / "CMakeLists.txt"
    text = re.sub(
        r"culaunch_add_headers\(.*\)", f"culaunch_add_headers(jit {words})", lists.read_text()
    )
    lists.write_text(text)
    build = tmp_path / "build"
    if "BASE" in words or "OTHER" in words:
        configure(project, build, *FLAGS)
        assert re.search(said, cmake("--build", build, fails=True))
    else:
        assert re.search(said, configure(project, build, fails=True))
