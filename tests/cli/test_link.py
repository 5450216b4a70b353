"""``culaunch link`` and ``culaunch fatbin``: the same words and answers as the API."""

import io
import sys
import types

import pytest
from click.testing import CliRunner

import culaunch as cl
from culaunch.cli import doctor, fatbin, link

KERNEL = """
__device__ float helper(float x);
extern "C" __global__ void k(float* y) { *y = helper(*y); }
"""
HELPER = "__device__ float helper(float x) { return 2 * x; }"

pytestmark = pytest.mark.needs("nvrtc")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for name, text in (("kernel", KERNEL), ("helper", HELPER)):
        cl.compile(text, arch="sm_80", relocatable=True).save(folder / f"{name}.cubin")
    for arch in ("sm_80", "compute_80"):
        cl.compile('extern "C" __global__ void k() {}', arch=arch).save(folder / f"{arch}.bin")
    return folder


def run(command, *words, code=0, text=None):
    result = CliRunner().invoke(command, [str(word) for word in words], input=text)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_link(parts, tmp_path):
    inputs, out = [parts / "kernel.cubin", parts / "helper.cubin"], tmp_path / "out.cubin"
    run(link.command, *inputs, "-o", out, "--arch", "sm_80", "--no-cache")
    assert cl.Image.open(out).data == cl.link(inputs, arch="sm_80").data
    assert [kernel.name for kernel in cl.inspect(out).images[0].kernels] == ["k"]


def test_fatbin(parts, tmp_path):
    inputs, out = [parts / "sm_80.bin", parts / "compute_80.bin"], tmp_path / "out.fatbin"
    run(fatbin.command, *inputs, "-o", out)
    assert cl.Image.open(out).arch == ("sm_80", "compute_80")
    run(fatbin.command, "-", inputs[1], "-o", out, text=inputs[0].read_bytes())
    assert cl.Image.open(out).arch == ("sm_80", "compute_80")


def test_standard_output(parts, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(buffer=written))
    fatbin.command.callback((str(parts / "sm_80.bin"),), "-", verbose=False)
    assert cl.Image.open(written.getvalue()).arch == ("sm_80",)


def test_the_doctor_prints_what_the_api_finds(monkeypatch):
    finding = cl.machine.Component("launching", "driver", "missing", "none", "install one")
    monkeypatch.setattr(cl.machine, "doctor", lambda: cl.machine.Diagnosis((finding,)))
    assert run(doctor.command) == "launching\n  driver  missing  none: install one\n"
    assert '"remedy": "install one"' in run(doctor.command, "--json")
    broken = cl.machine.Component("launching", "driver", "broken", "it fails")
    monkeypatch.setattr(cl.machine, "doctor", lambda: cl.machine.Diagnosis((finding, broken)))
    result = CliRunner().invoke(doctor.command, [], standalone_mode=False)
    assert result.return_value == 1
    assert "  driver  BROKEN   it fails" in result.output
