"""The C++ header: its tests under sanitizers, its warnings, and what it shows of itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

HERE = Path(__file__).parent
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
SANITIZERS = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry {name}()
{{ ret; }}
"""


@pytest.mark.parametrize("name", ["module", "kernel", "devices", "errors"])
def test_under_sanitizers(build, gxx, run_cpp, name):
    program = build(gxx, name, *WARNINGS, *SANITIZERS, HERE / f"test_{name}.cpp")
    assert run_cpp(program) == ""


def test_embedded_images(build, gxx, run_cpp, tmp_path):
    objects = []
    for name, kernels in (
        ("test_embed", ("scale", "empty", "third")),
        ("test_embed_second", ("of_second",)),
    ):
        flags = ("-c", *WARNINGS, *SANITIZERS)
        compiled = build(gxx, f"{name}.o", *flags, HERE / f"{name}.cpp")
        first, *others = (PTX.format(name=kernel) for kernel in kernels)
        image = first + "".join(text.split("64\n", 1)[1] for text in others)
        cl.embed(image.encode(), tmp_path / f"{name}.o", "kernels", merge_with=compiled)
        objects.append(tmp_path / f"{name}.o")
    program = build(gxx, "embed", *SANITIZERS, *objects)
    assert run_cpp(program) == ""


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("compiler", ["gxx", "clang"])
def test_there_are_no_warnings(request, build, tmp_path, compiler, standard):
    (tmp_path / "all.cpp").write_text(
        "#include <culaunch/culaunch.h>\n"
        "CULAUNCH_EMBED_CUBIN(unused);\n"
        "CULAUNCH_EMBED_CUBIN(used);\n"
        'void Use() { CULAUNCH_GET_KERNEL(used, "k")({1, 1}, 1, 2.0f); }\n'
    )
    program = request.getfixturevalue(compiler)
    build(program, "all.o", f"-std={standard}", "-c", *WARNINGS, tmp_path / "all.cpp")


@pytest.mark.needs("tvm_ffi")
@pytest.mark.parametrize("compiler", ["gxx", "clang"])
def test_kernel_libraries_have_no_warnings(request, build, compiler):
    from tvm_ffi import libinfo

    program = request.getfixturevalue(compiler)
    headers = ("-isystem", libinfo.find_include_path())
    build(program, "exports.o", "-fsyntax-only", *WARNINGS, *headers, HERE / "exports.cpp")


def test_no_header_depends_on_another_one_being_included_first(build, gxx, tmp_path):
    for header in sorted((Path(cl.include_dir()) / "culaunch").glob("*.h")):
        if header.name == "tvm_ffi.h":
            continue
        source = tmp_path / f"{header.stem}.cpp"
        source.write_text(f"#include <culaunch/{header.name}>\n" * 2)
        build(gxx, "alone.o", "-fsyntax-only", *WARNINGS, source)


def test_a_library_shows_nothing_of_culaunch(build, gxx):
    library = build(gxx, "visible.so", "-shared", "-fPIC", HERE / "library.cpp")
    symbols = subprocess.run(
        ["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    assert "library_driver" in symbols
    assert "culaunch" not in symbols
    needed = subprocess.run(
        ["readelf", "-d", library], capture_output=True, text=True, check=True
    ).stdout
    assert "libcuda" not in needed


def test_two_versions_in_one_process_are_independent(build, gxx, run_cpp):
    libraries = [
        build(gxx, f"{name}.so", "-shared", "-fPIC", *flags, HERE / "library.cpp")
        for name, flags in (("ours", ()), ("theirs", ("-Dv0_1_0=v9_9_9",)))
    ]
    program = build(gxx, "versions", HERE / "test_versions.cpp")
    assert run_cpp(program, *libraries) == ""


@pytest.mark.needs("cuda.bindings")
def test_damaged_images_are_refused_without_a_read_past_their_end(build, gxx, run_cpp, tmp_path):
    source = 'extern "C" __global__ void k(float* x, int n) { if (n > 1) x[n] = n; }'
    for arch in (["sm_90"], ["sm_80", "sm_90a", "compute_90"]):
        cl.compile(source, arch=arch).save(tmp_path / f"{len(arch)}.image")
    program = build(gxx, "fuzz_image", *WARNINGS, *SANITIZERS, HERE / "fuzz_image.cpp")
    said = run_cpp(program, *sorted(tmp_path.glob("*.image")))
    found = re.findall(r"^short (\d+) changed (\d+)$", said, re.MULTILINE)
    assert len(found) == 2
    # A hash could refuse all that was changed; that the sizes add up is what can be seen here.
    assert all(int(short) > 1900 and int(changed) > 100 for short, changed in found)


def test_what_a_launch_costs_over_the_driver_can_be_measured(gxx, recording_driver, tmp_path):
    script = HERE.parents[1] / "benchmarks" / "cpp_launch.py"
    result = tmp_path / "result.json"
    subprocess.run(
        [sys.executable, script, "--rounds", "3", "--json", result],
        env={**os.environ, "CULAUNCH_DRIVER": str(recording_driver)},
        check=True,
        capture_output=True,
    )
    assert set(json.loads(result.read_text())) == {"by hand", "Launch", "checked call"}
