"""``culaunch/jit.h`` in a program, and in a library that Python loads: drivers of all kinds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CPP = Path(__file__).parents[1]
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
OF_GXX = ("-Wuseless-cast", "-fno-gnu-unique")

pytestmark = pytest.mark.needs("nvrtc")


@pytest.mark.parametrize("sanitized", [True, False], ids=["sanitized", "plain"])
def test_a_program_compiles_keeps_loads_and_launches(
    request, build, jit_part, run_cpp, sanitizing, sanitized, tmp_path, monkeypatch
):
    """One of two compilers with sanitizers, the other one without."""
    compiler = "clang" if (sanitizing == "clang") == sanitized else "gxx"
    flags = (*(OF_GXX if compiler == "gxx" else ()), *(SANITIZERS if sanitized else ()))
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", "cache")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # NVRTC keeps what it allocates for the life of the process.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    program = request.getfixturevalue(compiler)
    part = jit_part(program, *flags)
    words = (*WARNINGS, *flags, CPP / "test_jit.cpp", part, "-ldl")
    program = build(program, f"jit_{compiler}", *words)
    left, own = tmp_path / "culaunch-pch-a1B2_3", tmp_path / "culaunch-pch-of-the-user"
    for directory in (left, own):
        directory.mkdir()
    assert run_cpp(program) == ""
    # Precompiled headers go with the process, as do those of one that was killed.
    assert list(tmp_path.glob("culaunch-pch-*")) == [own]


@pytest.mark.parametrize("how", ["scope", "static", "new"])
def test_where_a_jit_stands_when_the_process_ends(
    build, jit_part, gxx, run_cpp, how, tmp_path, monkeypatch
):
    """In a static variable it unloads when the driver may be gone; never deleted, it does not."""
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.setenv("CULAUNCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_DRIVER_LOG_FILE", str(tmp_path / "log"))
    part = jit_part(gxx, *OF_GXX)
    program = build(gxx, f"jit_at_exit_{how}", *WARNINGS, CPP / "jit_at_exit.cpp", part, "-ldl")
    assert run_cpp(program, how) == "the end of main\n"
    log = (tmp_path / "log").read_text().splitlines()
    assert sum(line.startswith("load k") for line in log) == 1
    assert log.count("unload") == (0 if how == "new" else 1)


EMULATED = """
import ctypes, os, sys
import numpy
import culaunch as cl

library, nvrtc = sys.argv[1:]
scale = ctypes.CDLL(library).Scale
linked = ctypes.CDLL(library).ScaleLinked
scale.restype = linked.restype = ctypes.c_char_p
source = b'''
template <class T> __global__ void scale(T* y, const T* x, T a, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = a * x[threadIdx.x];
}'''
x = numpy.arange(48, dtype=numpy.float32)
y = numpy.zeros_like(x)
for factor in (3.0, 5.0):
    said = scale(source, b"scale<float>", ctypes.c_void_p(y.ctypes.data),
                 ctypes.c_void_p(x.ctypes.data), ctypes.c_float(factor), len(x), nvrtc.encode())
    assert said == b"", said.decode()
    cl.synchronize()
    assert (y == factor * x).all()
said = linked(ctypes.c_void_p(y.ctypes.data), ctypes.c_void_p(x.ctypes.data), ctypes.c_float(7.0),
              len(x), nvrtc.encode())
assert said == b"", said.decode()
cl.synchronize()
assert (y == 7.0 * x).all()
# Python compiles the same: it finds the image that the library made.
def entries():
    return {one for one in os.listdir(cl.cache.Cache().path) if one.endswith(".entry")}
made = entries()
image = cl.compile(source.decode(), names=["scale<float>"])
assert image.format == "ptx"
assert entries() == made
"""


@pytest.mark.needs("numpy")
def test_a_library_compiles_for_the_emulator(build, jit_part, gxx, nvrtc, tmp_path):
    part = jit_part(gxx, *OF_GXX)
    words = ("-shared", "-fPIC", "-fno-gnu-unique", *WARNINGS, CPP / "jit_library.cpp", part)
    library = build(gxx, "libjit.so", *words, "-ldl")
    words = ["readelf", "-sW", library]
    symbols = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "UNIQUE" not in symbols  # a library with one would never be unloaded
    environment = {
        **os.environ,
        "CULAUNCH_DRIVER": "emulator",
        "CULAUNCH_CACHE_DIR": str(tmp_path / "emulated"),
    }
    launch_from(library, nvrtc, EMULATED, environment, "-W", "error")


def launch_from(library, nvrtc, code, environment, *options):
    """Run Python code on a library that was built, in a process with these options."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code, library, nvrtc],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.gpu
def test_a_library_compiles_for_the_gpu(build, jit_part, gxx, nvrtc, tmp_path):
    part = jit_part(gxx, *OF_GXX)
    words = ("-shared", "-fPIC", CPP / "jit_library.cpp", part, "-ldl")
    library = build(gxx, "libjit_gpu.so", *words)
    code = EMULATED.replace(
        "x = numpy.arange(48, dtype=numpy.float32)\ny = numpy.zeros_like(x)",
        (
            "x = cl.to_device(numpy.arange(48, dtype=numpy.float32))\n"
            "y = cl.to_device(numpy.zeros(48, numpy.float32))"
        ),
    )
    code = code.replace("y.ctypes.data", "y.address").replace("x.ctypes.data", "x.address")
    code = code.replace("(y == factor * x).all()", "(y.numpy() == factor * x.numpy()).all()")
    code = code.replace("(y == 7.0 * x).all()", "(y.numpy() == 7.0 * x.numpy()).all()")
    code = code.replace('"ptx"', '"cubin"')
    environment = {**os.environ, "CULAUNCH_CACHE_DIR": str(tmp_path / "on-gpu")}
    launch_from(library, nvrtc, code, environment)
