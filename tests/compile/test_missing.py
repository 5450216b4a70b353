"""A missing package is an error that names the pip command."""

import importlib.metadata
import sys

import pytest

import culaunch as cl
from culaunch._compile import linking, nvrtc
from culaunch._compile.nvrtc_build import missing

PLAIN = "__global__ void k() {}"


@pytest.fixture
def without(monkeypatch):
    """Hide a module of cuda-bindings."""
    functions = (nvrtc.nvrtc, nvrtc.loaded_library, linking.needed_nvjitlink)

    def hide(name):
        for function in functions:
            function.cache_clear()
        package = sys.modules.get("cuda.bindings")
        if package is not None:
            monkeypatch.delattr(package, name, raising=False)
        monkeypatch.setitem(sys.modules, f"cuda.bindings.{name}", None)

    yield hide
    monkeypatch.undo()
    for function in functions:
        function.cache_clear()


def test_nvrtc(without):
    without("nvrtc")
    with pytest.raises(cl.MissingDependencyError, match=r"pip install 'culaunch\[compile\]'"):
        cl.compile(PLAIN, arch="sm_80", cache=False)


def test_nvfatbin(without):
    without("nvfatbin")
    with pytest.raises(cl.MissingDependencyError, match=r"nvFatbin.*pip install"):
        cl.compile(PLAIN, arch=["sm_80", "sm_90"], cache=False)


def test_nvjitlink(without):
    ptx = cl.compile(PLAIN, arch="compute_80", cache=False)
    without("nvjitlink")
    with pytest.raises(cl.MissingDependencyError, match=r"nvJitLink.*pip install"):
        cl.link(ptx, arch="sm_80", cache=False)


def test_a_hit_needs_no_compiler(without, cache):
    image = cl.compile(PLAIN, arch="sm_80", cache=cache)
    without("nvrtc")
    assert cl.compile(PLAIN, arch="sm_80", cache=cache) == image


def test_precompiled_headers_that_nvrtc_is_too_old_for(monkeypatch):
    def missing():
        raise RuntimeError("function nvrtcGetPCHHeapSize is not found")

    monkeypatch.setattr(nvrtc.nvrtc(), "nvrtcGetPCHHeapSize", missing)
    with pytest.raises(ValueError, match=r"pch=True needs NVRTC 12\.8"):
        cl.compile(PLAIN, arch="sm_80", cache=False, pch=True)


@pytest.mark.parametrize(
    ("version", "error", "command"),
    [
        (None, ImportError("No module"), "python -m pip install 'culaunch[compile]'"),
        ("13.0.0", RuntimeError("CUDA driver is not found"), "--upgrade 'cuda-bindings>=13.2'"),
        ("13.1.1", ImportError("cannot import name"), "--upgrade 'cuda-bindings>=13.2'"),
        ("13.2.0", RuntimeError("not found"), "python -m pip install 'culaunch[compile]'"),
        ("13.5.0.post1", RuntimeError("not found"), "python -m pip install 'culaunch[compile]'"),
        ("12.9.0", ImportError("cannot import name"), "--upgrade 'cuda-bindings<13'"),
        ("12.9.4", RuntimeError("not found\nagain"), "pip install nvidia-nvfatbin-cu12"),
    ],
)
def test_the_command_changes_something(monkeypatch, version, error, command):
    def installed(name):
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", installed)
    text = str(missing("a fatbin", "nvFatbin", error))
    assert text.startswith("a fatbin needs nvFatbin, which cannot be loaded (")
    assert command in text
    assert "\n" not in text


def test_lto_says_why_it_needs_nvfatbin(without):
    without("nvfatbin")
    with pytest.raises(cl.MissingDependencyError, match="LTO-IR, which is kept in a fatbin, n"):
        cl.compile(PLAIN, arch="sm_80", lto=True, cache=False)


def test_the_declared_bindings_have_all_that_is_asked_of_them():
    wanted = [one for one in importlib.metadata.requires("culaunch") if "cuda-bindings" in one]
    assert [one.partition(";")[0].strip() for one in wanted] == ["cuda-bindings>=13.2"]
