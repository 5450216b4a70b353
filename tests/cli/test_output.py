"""``-o``: standard output, devices and errors that name what the user named."""

import os
import subprocess
import sys

import pytest

import culaunch as cl

SOURCE = 'extern "C" __global__ void k(int* x) { *x = 1; }\n'


@pytest.fixture
def culaunch(tmp_path):
    (tmp_path / "kernel.cu").write_text(SOURCE)
    environment = {**os.environ, "CULAUNCH_CACHE_DIR": str(tmp_path / "cache")}

    def run(*arguments, code=0, **keywords):
        command = [sys.executable, "-m", "culaunch", *arguments]
        result = subprocess.run(
            command, check=False, capture_output=True, cwd=tmp_path, env=environment, **keywords
        )
        assert result.returncode == code, result.stderr.decode()
        return result.stdout, result.stderr.decode()

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "form"), [("sm_80", "cubin"), ("compute_80", "ptx"), ("sm_80,sm_90", "fatbin")]
)
def test_a_dash_writes_the_image_to_standard_output(culaunch, tmp_path, arch, form):
    written, said = culaunch("compile", "kernel.cu", "-o", "-", "--arch", arch)
    assert cl.Image.open(written).format == form
    assert said == ""
    assert not (tmp_path / "-").exists()


@pytest.mark.slow
def test_warnings_and_names_are_not_in_the_output(culaunch, tmp_path):
    (tmp_path / "kernel.cu").write_text("__global__ void k() { int unused; }")
    words = ("compile", "kernel.cu", "-o", "-", "--arch", "compute_80", "-v")
    written, said = culaunch(*words)
    assert cl.Image.open(written).data.rstrip(b"\0") == written.rstrip(b"\0")
    assert "#177-D" not in written.decode()
    assert "#177-D" in said
    assert said.endswith(f"-: ptx for compute_80, {len(written)} bytes\n  k()\n")


@pytest.mark.slow
def test_a_failed_compile_writes_nothing_to_standard_output(culaunch, tmp_path):
    (tmp_path / "kernel.cu").write_text("nonsense;\n")
    written, said = culaunch("compile", "kernel.cu", "-o", "-", "--arch", "sm_80", code=1)
    assert written == b""
    assert "nonsense" in said


@pytest.mark.slow
def test_embed_writes_an_object_to_standard_output(culaunch, tmp_path):
    culaunch("compile", "kernel.cu", "-o", "k.cubin", "--arch", "sm_80")
    written, _ = culaunch("embed", "--cubin", "k.cubin", "--name", "kern", "-o", "-")
    cl.cpp.embed(tmp_path / "k.cubin", tmp_path / "k.o", "kern")
    assert written == (tmp_path / "k.o").read_bytes()


@pytest.mark.slow
def test_a_device_is_an_output_and_stays_one(culaunch):
    before = os.stat("/dev/null").st_ino
    culaunch("compile", "kernel.cu", "-o", "/dev/null", "--arch", "compute_80")
    assert os.stat("/dev/null").st_ino == before


@pytest.mark.slow
def test_an_error_names_the_output_and_no_temporary_file(culaunch):
    _, said = culaunch("compile", "kernel.cu", "-o", "no/x.cubin", "--arch", "sm_80", code=1)
    assert said == "error: no: the directory of the output does not exist: create it first\n"
