"""What is not installed is an error that names the pip command."""

import sys

import pytest

import culaunch as cl
from culaunch._compile import _link, _nvrtc

PLAIN = "__global__ void k() {}"


@pytest.fixture
def without(monkeypatch):
    """Hide a module of cuda-bindings."""
    functions = (_nvrtc.nvrtc, _nvrtc.loaded_library, _link._nvjitlink)

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

    monkeypatch.setattr(_nvrtc.nvrtc(), "nvrtcGetPCHHeapSize", missing)
    with pytest.raises(ValueError, match=r"pch=True needs NVRTC 12\.8"):
        cl.compile(PLAIN, arch="sm_80", cache=False, pch=True)
