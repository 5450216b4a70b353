"""find_package(culaunch) and its functions, from projects outside."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import culaunch as cl

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
pytestmark = pytest.mark.needs("cmake", "g++")


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """A copy of the outside project, at a path with a space."""
    return Path(
        shutil.copytree(HERE / "outside", tmp_path_factory.mktemp("my project") / "out side")
    )


def check_run(record):
    launches = [line for line in record if line.startswith("launch")]
    where = "device=0 grid=4,1,1 block=256,1,1 shared=0 stream=default"
    one = "device=0 grid=1,1,1 block=1,1,1 shared=0 stream=default"
    assert launches == [
        f"launch scale {where} args 0000000000000000 0000000000000000 00000040 e8030000",
        f"launch shift {where} args 0000000000000000 e8030000",
        f"launch plugin {one} args 01000000",
        f"launch plugin {one} args 0200000000000000",
        f"launch plugin {one} args 01000000",
        f"launch plugin {one} args 01000000",
    ]


def check_exports(library):
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    assert "plugin1" in shown
    # Templates of the standard library over our types may be there: they carry the version.
    assert not re.search(r" (_ZNK?8culaunch|culaunch)", shown)


@pytest.mark.needs("nvcc", "ninja")
def test_with_nvcc_and_ninja(cmake, configure, project, run_recorded):
    build = project.parent / "with nvcc"
    configure(project, build, "-DOUTSIDE_FACTOR=3")
    said = cmake("--build", build)
    assert "Compiling kernels.fatbin for sm_80, compute_90 with nvcc" in said
    check_run(run_recorded(build / "outside"))
    check_exports(build / "libplugin1.so")
    image = cl.Image.open(build / "culaunch" / "outside" / "kernels.fatbin")
    assert set(image.arch) == {"sm_80", "compute_90"}

    listed = cl.inspect(build / "outside").images
    assert sorted(image.arch for image in listed) == ["compute_90", *["sm_80"] * 3]

    assert "no work to do" in cmake("--build", build)
    # A change of any input rebuilds the image and the target that contains it.
    for change in ("kernels/shift.cu", "kernels/with space/index.h"):
        path = project / change
        path.write_text(path.read_text() + "\n")
        said = cmake("--build", build)
        assert "Compiling kernels.fatbin" in said
        assert "Linking CXX executable outside" in said
        assert "cubin" not in said
    configure(project, build, "-DOUTSIDE_FACTOR=4")
    assert "Compiling kernels.fatbin" in cmake("--build", build)
    assert "no work to do" in cmake("--build", build)


@pytest.mark.needs("make", "nvrtc")
def test_with_nvrtc_makefiles_and_a_subdirectory(cmake, configure, project, run_recorded):
    build = project.parent / "with nvrtc"
    said = configure(
        project,
        build,
        "--no-warn-unused-cli",
        "-DOUTSIDE_FACTOR=3",
        "-DCULAUNCH_NVCC=OFF",
        f"-DOUTSIDE_SUBDIRECTORY={ROOT}",
        generator="Unix Makefiles",
    )
    assert "Python" not in said  # the extension is not configured for an outside project
    said = cmake("--build", build)
    assert "Compiling kernels.fatbin for sm_80, compute_90 with NVRTC" in said
    check_run(run_recorded(build / "outside"))
    assert "Compiling" not in cmake("--build", build)
    path = project / "kernels/with space/index.h"
    time.sleep(1.1)  # make may compare times in whole seconds
    path.touch()
    said = cmake("--build", build)
    assert "Compiling kernels.fatbin" in said
    assert "kernels.cubin" not in said


def test_the_tree_of_a_wheel(cmake, tmp_path):
    package = tmp_path / "lib" / "python3" / "site-packages" / "culaunch"
    shutil.copytree(Path(cl.__file__).parent, package, ignore=shutil.ignore_patterns("*.so"))
    for name, place in (("include", cl.cpp.include_dir()), ("cmake", cl.cpp.cmake_dir())):
        if not (package / name).exists():
            shutil.copytree(place, package / name)
    image = tmp_path / "k.ptx"
    image.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{ret;}\n")
    (tmp_path / "main.cpp").write_text(
        "#include <culaunch/culaunch.h>\n"
        "CULAUNCH_EMBED_CUBIN(k);\n"
        "int main() { return culaunch_size_k == 0; }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(user LANGUAGES CXX)\n"
        "find_package(culaunch 0.1 REQUIRED)\n"
        "add_executable(user main.cpp)\n"
        "culaunch_embed_cubin(user NAME k CUBIN k.ptx)\n"
    )
    build = tmp_path / "build"
    cmake("-S", tmp_path, "-B", build, f"-Dculaunch_DIR={package / 'cmake'}")
    cmake("--build", build)
    assert subprocess.run([build / "user"], check=False).returncode == 0
    cache = (build / "CMakeCache.txt").read_text()
    assert re.search(r"^CULAUNCH_CUDA_INCLUDE_DIR:PATH=/", cache, re.MULTILINE)


@pytest.mark.needs("ninja", "nvrtc")
def test_whatever_way_a_project_spells_it(cmake, configure, run_recorded, tmp_path):
    """Object libraries, unity builds, relative names, generator expressions, exports."""
    source = Path(shutil.copytree(HERE / "spellings", tmp_path / "spell ings"))
    build = tmp_path / "build"
    configure(source, build, "-DCULAUNCH_NVCC=OFF", "-DCMAKE_UNITY_BUILD=ON")
    cmake("--build", build)
    record = run_recorded(build / "app")
    assert sum(line.startswith("load") for line in record) == 2
    assert [line.split(" ", 2)[1] for line in record if line.startswith("launch")] == [
        "generated",
        "generated",
        "given",
    ]
    listed = cl.inspect(build / "libshared.so").images
    assert [image.arch for image in listed] == ["sm_80", "compute_90"]
    # A consumer of the static library needs dlopen, from wherever the C library has it.
    cmake("--install", build, "--prefix", tmp_path / "installed")
    (exported,) = (tmp_path / "installed").rglob("spellings.cmake")
    assert "$<LINK_ONLY:dl>" in exported.read_text()
    assert list((tmp_path / "installed").rglob("*kernels.image.cpp.o"))


def test_a_cross_compiler_says_what_objects_are_for(cmake, configure, tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text(
        '#!/bin/sh\n[ "$1" = -dumpmachine ] && echo aarch64-linux-gnu || exec g++ "$@"\n'
    )
    compiler.chmod(0o755)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(user LANGUAGES CXX)\n"
        "find_package(culaunch REQUIRED)\n"
        "add_executable(user main.cpp)\n"
        "culaunch_embed_cubin(user NAME k CUBIN k.ptx)\n"
    )
    (tmp_path / "main.cpp").touch()
    (tmp_path / "k.ptx").write_text(".version 8.0\n.target sm_80\n.address_size 64\n")
    options = (f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_CXX_COMPILER_WORKS=1")
    configure(tmp_path, tmp_path / "build", *options)
    cmake("--build", tmp_path / "build", "--target", "user_culaunch_k")
    (written,) = (tmp_path / "build").rglob("k.o")
    assert written.read_bytes()[18:20] == (183).to_bytes(2, "little")  # EM_AARCH64


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("culaunch_add_kernels(none NAME k SOURCES k.cu)", 'there is no target "none"'),
        ("culaunch_add_kernels(user NAME my-k SOURCES k.cu)", "NAME must be a C identifier"),
        ("culaunch_add_kernels(user NAME k)", "SOURCES must name CUDA sources"),
        ("culaunch_add_kernels(user NAME k SOURCES k.cu)", "name what to compile"),
        (
            "culaunch_add_kernels(user NAME k SOURCES k.cu ARCHITECTURES sm_80)",
            'an architecture is a number as in 80, 90a, 100f.*got "sm_80"',
        ),
        (
            "culaunch_add_kernels(user NAME k SOURCES k.cu ARCHITECTURES 80 90 CUBIN)",
            "one cubin or PTX is for one architecture",
        ),
        (
            "culaunch_add_kernels(user NAME k SOURCES none.cu ARCHITECTURES 80)",
            "the CUDA source .*none.cu does not exist",
        ),
        (
            "culaunch_add_kernels(user NAME k SOURCE k.cu)",
            "unknown arguments SOURCE",
        ),
        (
            "culaunch_add_kernels(user NAME k SOURCES k.cu ARCHITECTURES 80 CUBIN FATBIN)",
            "FATBIN and CUBIN exclude each other",
        ),
        (
            "culaunch_add_kernels(user NAME k SOURCES k.cu ARCHITECTURES native)",
            'what architectures "native" are, CMake.s CUDA language knows',
        ),
        (
            "set(CMAKE_CUDA_ARCHITECTURES OFF)\nculaunch_add_kernels(user NAME k SOURCES k.cu)",
            "name what to compile",
        ),
        (
            "set(CULAUNCH_MACHINE riscv64)\nculaunch_embed_cubin(user NAME k CUBIN k.cu)",
            'is for "riscv64": set CULAUNCH_MACHINE',
        ),
        ("find_package(culaunch 99 REQUIRED)", r"version: 0\.1\.0"),
    ],
)
def test_mistakes(configure, tmp_path, lines, message):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\n"
        "project(user LANGUAGES CXX)\n"
        "find_package(culaunch REQUIRED)\n"
        "add_executable(user main.cpp)\n" + lines
    )
    for name in ("main.cpp", "k.cu"):
        (tmp_path / name).touch()
    # The compiler is not asked what it can do: nothing is built here.
    said = configure(tmp_path, tmp_path / "build", "-DCMAKE_CXX_COMPILER_WORKS=1", fails=True)
    assert re.search(message, " ".join(said.split()))
