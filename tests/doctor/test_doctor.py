"""The report of ``doctor`` for this machine, and for machines that lack parts."""

import builtins
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import culaunch as cl
from culaunch._base import cuda_places
from culaunch._doctor import compilers, drivers, packages


def by_name(components):
    return {component.name: component for component in components}


@pytest.fixture(scope="module")
def found():
    return cl.machine.doctor()


def test_every_finding_is_whole(found):
    assert {one.state for one in found.components} <= {"ok", "missing", "broken"}
    for one in found.components:
        assert one.topic, one
        assert one.name, one
        assert one.detail or one.remedy, one
        if one.state == "missing":
            assert one.remedy or one.detail, one
    assert len({(one.topic, one.name) for one in found.components}) == len(found.components)


def test_what_is_here(found):
    here = by_name(found.components)
    assert here["culaunch"].detail == cl.__version__
    assert here["Python"].detail.endswith(sys.version.split()[0])
    assert here["numpy"].state == "ok"
    assert here["emulator"].state == "ok"
    assert here["cache"].detail.startswith(cl.cache.Cache().path)


@pytest.mark.needs("nvrtc")
def test_the_compiler_is_here(found):
    here = by_name(found.components)
    assert ", for sm_" in here["NVRTC"].detail
    assert here["cuda_fp16.h"].detail.endswith("cuda_fp16.h")


def test_variables_of_culaunch_that_have_a_value_are_listed(monkeypatch):
    for name in [name for name in os.environ if name.startswith("CULAUNCH_")]:
        monkeypatch.delenv(name)
    assert "environment" not in by_name(cl.machine.doctor().components)
    for name, value in {"CULAUNCH_STRICT": "0", "CULAUNCH_DRIVER": "", "CULA": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CULAUNCH_CACHE_SIZE", "7M")
    found = by_name(cl.machine.doctor().components)
    assert found["environment"].detail == "CULAUNCH_CACHE_SIZE=7M, CULAUNCH_STRICT=0"


def test_the_report_is_for_reading_and_for_programs(found):
    text = str(found)
    for one in found.components:
        assert one.name in text
        assert one.detail in text
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert json.loads(json.dumps(found.to_dict()))["components"][0]["name"] == "culaunch"
    assert found._repr_html_().startswith("<pre>this installation")
    assert found.broken == tuple(one for one in found.components if one.state == "broken")


def test_a_machine_with_nothing(monkeypatch):
    monkeypatch.setattr(cuda_places, "find_nvcc", lambda: None)
    monkeypatch.setattr("culaunch._doctor.compilers.find_nvcc", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(packages, "_FRAMEWORKS", (("no_such_package", "no-such", ""),))

    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    here = by_name(compilers.check_compilers())
    for name in ("nvcc", "CMake", "ninja", "TVM-FFI"):
        assert here[name].state == "missing"
        assert here[name].remedy.startswith("python -m pip install ")
    assert here["C++ compiler"].state == "missing"
    (framework,) = packages.check_frameworks()
    assert (framework.state, framework.remedy) == ("missing", "python -m pip install no-such")


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("CMake", "cmake"), ("ninja", "ninja"), ("nvcc", "nvcc"), ("C++ compiler", "c++"),
        ("C++ compiler", "g++"), ("C++ compiler", "clang++"),
    ],
)  # fmt: skip
def test_a_program_in_path_is_found(monkeypatch, tmp_path, name, program):
    """No distribution of that name is needed, nor a variable that names the program."""
    path = tmp_path / program
    # PATH has no other programs: the shell's own commands have to do.
    path.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo {program}, release 3.25.1\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    found = by_name(compilers.check_compilers())[name]
    assert (found.state, found.detail) == ("ok", f"{program}, release 3.25.1, {path}")


def test_a_framework_that_is_broken(monkeypatch, tmp_path):
    (tmp_path / "broken_one.py").write_text("raise RuntimeError('half installed')")
    (tmp_path / "broken_two.py").write_text("import no_such_part")
    monkeypatch.syspath_prepend(tmp_path)
    names = ("broken_one", "broken_two")
    monkeypatch.setattr(packages, "_FRAMEWORKS", tuple((name, name, "") for name in names))
    one, two = packages.check_frameworks()
    assert (one.state, one.detail) == ("broken", "RuntimeError: half installed")
    assert two.state == "broken"
    assert "no_such_part" in two.detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "way"),
    [
        pytest.param(package, way, id=package, marks=pytest.mark.needs(package))
        for package, way in {
            "numpy": "DLPack", "torch": "DLPack's exchange API", "jax": "DLPack",
        }.items()
    ],
)  # fmt: skip
def test_how_arrays_are_read(package, way):
    found = {one.name: one for one in packages.check_frameworks()}
    assert found[package].detail.endswith(f", {way}")


@pytest.mark.slow
@pytest.mark.gpu
def test_a_machine_with_a_gpu(has):
    """Text and JSON of a separate process report the parts, and that they work."""
    environment = {name: value for name, value in os.environ.items() if name != "CULAUNCH_DRIVER"}
    text, as_json = (
        subprocess.run(
            [sys.executable, "-m", "culaunch", "doctor", *words],
            capture_output=True, text=True, env=environment, timeout=120, check=True,
        ).stdout
        for words in ((), ("--json",))
    )  # fmt: skip
    assert "BROKEN" not in text
    here = {one["name"]: one for one in json.loads(as_json)["components"]}
    assert here["chosen driver"]["detail"] == "cuda (by default)"
    assert re.match(r"for CUDA 1[2-9]\.\d", here["CUDA driver"]["detail"])
    for device in cl.driver.devices():
        told = here[f"device {device.ordinal}"]
        assert told["state"] == "ok"
        what = f"{device.name}, {device.arch}, "
        assert told["detail"].startswith(what)
        assert told["detail"].endswith("GiB free, a context can be created")
        assert what in text
    for package in ("numpy", "torch", "cupy", "jax", "triton"):
        if has(package):
            assert here[package]["state"] == "ok"
    for package, way in (("torch", "DLPack's exchange API"), ("cupy", "DLPack"), ("jax", "DLPack")):
        if has(package):
            assert way in here[package]["detail"]


def test_a_driver_that_is_none(monkeypatch):
    monkeypatch.setenv("CULAUNCH_DRIVER", "emulater")
    chosen = by_name(drivers.check_drivers())["chosen driver"]
    assert chosen.state == "broken"
    assert "did you mean 'emulator'?" in chosen.detail


def test_an_emulator_without_numpy(monkeypatch):
    real = builtins.__import__

    def without_numpy(name, *rest):
        if name == "numpy":
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_numpy)
    emulator = by_name(drivers.check_drivers())["emulator"]
    assert (emulator.state, emulator.remedy) == ("missing", "python -m pip install numpy")


def test_a_device(monkeypatch):
    class Driver:
        version, device_count = 13000, 2

        @staticmethod
        def open(name):
            return Driver()

        def attribute(self, number, ordinal):
            return {75: 9, 76: 0}[number]

        def device_name(self, ordinal):
            return "NVIDIA H200"

        def memory_info(self, ordinal):
            if ordinal == 1:
                raise cl.DriverError("asking for the free memory failed: CUDA_ERROR_X")
            return 1 << 30, 1 << 37

        def graph_status(self):
            return "auto", True, "measured", 3, 256

    monkeypatch.setattr("culaunch._doctor.drivers.Driver", Driver)
    here = by_name(drivers.check_drivers())
    assert here["CUDA driver"].detail.startswith("for CUDA 13.0")
    assert here["graphs"].detail == "launches as executable graphs: on: measured; 3 of at most 256"
    assert here["device 0"].detail.startswith("NVIDIA H200, sm_90, 1.0 of 128.0 GiB free")
    assert here["device 1"].state == "broken"
