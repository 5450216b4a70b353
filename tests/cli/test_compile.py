"""``culaunch compile``: the same words and the same answers as ``cl.compile``."""

import os
import re
import subprocess
import sys

import pytest

import culaunch as cl

SOURCE = """
#include "value.h"
template <class T>
__global__ void scale(T* y, T a) { y[threadIdx.x] *= a * VALUE; }
"""


@pytest.fixture
def culaunch(tmp_path):
    (tmp_path / "kernel.cu").write_text(SOURCE)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "value.h").write_text("#define VALUE 3\n")
    environment = {**os.environ, "CULAUNCH_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("CULAUNCH_DRIVER", None)

    def run(*arguments, code=0, text=None, **variables):
        command = [sys.executable, "-m", "culaunch", *arguments]
        result = subprocess.run(
            command,
            check=False,
            capture_output=True,
            input=text,
            cwd=tmp_path,
            env=environment | variables,
        )
        assert result.returncode == code, result.stderr.decode()
        return (result.stdout + result.stderr).decode()

    return run


OPTIONS = ("--name", "scale<float>", "-I", "include")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "arch", "archs"),
    [
        ("kernel.cubin", "sm_80", ("sm_80",)),
        ("kernel.fatbin", "sm_80,sm_90a", ("sm_80", "sm_90a")),
        ("kernel.fatbin", "sm_80", ("sm_80",)),
        ("kernel.ptx", "compute_80", ("compute_80",)),
    ],
)
def test_the_suffix_says_what_to_make(culaunch, tmp_path, output, arch, archs):
    assert culaunch("compile", "kernel.cu", "-o", output, "--arch", arch, *OPTIONS) == ""
    image = cl.Image.open(tmp_path / output)
    assert (f".{image.format}", image.arch) == (os.path.splitext(output)[1], archs)
    assert image.names == {"scale<float>": "_Z5scaleIfEvPT_S0_"}
    if len(archs) > 1:
        made = cl.compile(
            tmp_path / "kernel.cu",
            arch=archs,
            names=["scale<float>"],
            include_dirs=[tmp_path / "include"],
        )
        assert made == image


@pytest.mark.slow
def test_standard_input(culaunch, tmp_path):
    culaunch("compile", "-", "-o", "a.cubin", "--arch", "sm_80", text=b"__global__ void k() {}")
    assert cl.Image.open(tmp_path / "a.cubin").kernels[0].demangled == "k()"
    text = b"\n__global__ void k() { oops }"
    found = culaunch("compile", "-", "-o", "b.cubin", "--arch", "sm_80", text=text, code=1)
    assert '<stdin>(2): error: identifier "oops" is undefined' in found
    assert not (tmp_path / "b.cubin").exists()
    found = culaunch("compile", "-", "-o", "b.cubin", "--arch", "sm_80", text=b"\xff", code=2)
    assert "standard input is not text" in found


@pytest.mark.slow
def test_options(culaunch, tmp_path):
    (tmp_path / "options.cu").write_text(
        "#if N != 4 || !FLAG || __cplusplus < 202002L\n#error wrong\n#endif\n"
        "__global__ void k(float* x) { *x = sinf(*x); }"
    )
    options = ["-D", "N=4", "-D", "FLAG", "--std", "c++20", "--fast-math", "--line-info"]
    culaunch("compile", "options.cu", "-o", "k.ptx", "--arch", "compute_80", *options)
    text = (tmp_path / "k.ptx").read_text()
    assert "sin.approx" in text
    assert "\t.loc\t" in text


@pytest.mark.slow
def test_warnings(culaunch):
    text = b"__global__ void k() { int unused; }"
    command = ("compile", "-", "-o", "k.cubin", "--arch", "sm_80")
    assert "#177-D" in culaunch(*command, text=text)
    assert "warnings_as_errors" in culaunch(*command, "--warnings-as-errors", text=text, code=1)


@pytest.mark.slow
def test_the_cache_is_used_unless_told_not_to(culaunch, tmp_path):
    command = ("compile", "kernel.cu", "-o", "k.cubin", "--arch", "sm_80", *OPTIONS)
    culaunch(*command, "--no-cache")
    assert not (tmp_path / "cache").exists()
    culaunch(*command)
    assert cl.cache.Cache(tmp_path / "cache").info().entries == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("kernel.cu", "-o", "k.o", "--arch", "sm_80"), 2, "the suffix selects the format"),
        (("kernel.cu",), 2, "--output"),
        (("nothing.cu", "-o", "k.cubin", "--arch", "sm_80"), 1, "nothing.cu"),
        (("kernel.cu", "-o", "k.cubin", "--arch", "sm_99"), 1, "which supports sm_75"),
        (("kernel.cu", "-o", "k.cubin", "--arch", "sm_80"), 1, "value.h"),
        (("kernel.cu", "-o", "k.cubin", "--arch", "sm_80,sm_90", *OPTIONS), 2, "makes a fatbin"),
        (("kernel.cu", "-o", "k.ptx", "--arch", "sm_80", *OPTIONS), 2, "compute_"),
    ],
)
def test_mistakes(culaunch, arguments, code, message):
    found = culaunch("compile", *arguments, code=code)
    assert message in " ".join(found.split())
    assert "Traceback" not in found


def test_code_for_a_gpu_while_the_emulator_is_chosen(culaunch):
    words = ("compile", "kernel.cu", "-o", "k.cubin", "--arch", "sm_80", *OPTIONS)
    found = culaunch(*words, code=2, CULAUNCH_DRIVER="emulator")
    found = " ".join(found.split())
    assert "k.fatbin, or unset CULAUNCH_DRIVER: for the emulator, PTX is added" in found


def test_verbose_says_what_was_written(culaunch):
    said = culaunch("compile", "kernel.cu", "-o", "k.ptx", "--arch", "compute_80", *OPTIONS, "-v")
    assert re.match(r"k\.ptx: ptx for compute_80, \d+ bytes\n  .*scale", said)
    said = culaunch("fatbin", "k.ptx", "-o", "k.fatbin", "--verbose")
    assert re.match(r"k\.fatbin: fatbin for compute_80, \d+ bytes\n  .*scale", said)


def test_an_error_is_said_once(culaunch, tmp_path):
    (tmp_path / "wrong.cu").write_text("__global__ void k() { int x = y; }")
    said = culaunch("compile", "wrong.cu", "-o", "k.ptx", "--arch", "compute_80", code=1)
    assert said.count("undefined") == said.count("int x = y") == 1
    assert said.splitlines()[2].index("^") == said.splitlines()[1].index("y;")
