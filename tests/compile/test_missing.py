"""A missing package is an error that names the pip command."""

import importlib.metadata

import pytest

import culaunch as cl
from culaunch._compile import fatbins, linking, nvrtc

PLAIN = "__global__ void k() {}"


@pytest.fixture
def without(monkeypatch):
    """Let the extension find one of NVIDIA's libraries nowhere."""
    functions = (nvrtc.opened_nvrtc, nvrtc.loaded_version, linking.opened_nvjitlink)

    def hide(module, function):
        for one in functions:
            one.cache_clear()

        def fail(*_):
            raise cl.MissingDependencyError("It cannot be loaded: it is nowhere")

        monkeypatch.setattr(module, function, fail)

    yield hide
    monkeypatch.undo()
    for one in functions:
        one.cache_clear()


def test_nvrtc(without):
    without(nvrtc, "open_nvrtc")
    with pytest.raises(
        cl.MissingDependencyError,
        match=r"compiling needs NVRTC\. .* nowhere: python -m pip install 'culaunch\[compile\]'",
    ):
        cl.compile(PLAIN, arch="sm_80", cache=False)


def test_nvfatbin(without):
    without(fatbins, "combine_images")
    with pytest.raises(cl.MissingDependencyError, match=r"nvFatbin.*pip install"):
        cl.compile(PLAIN, arch=["sm_80", "sm_90"], cache=False)


def test_nvjitlink(without):
    ptx = cl.compile(PLAIN, arch="compute_80", cache=False)
    without(linking, "open_nvjitlink")
    with pytest.raises(cl.MissingDependencyError, match=r"nvJitLink.*pip install"):
        cl.link(ptx, arch="sm_80", cache=False)


def test_a_hit_loads_no_compiler(without, cache):
    image = cl.compile(PLAIN, arch="sm_80", cache=cache)
    without(nvrtc, "nvrtc_version")
    assert cl.compile(PLAIN, arch="sm_80", cache=cache) == image
    with pytest.raises(cl.MissingDependencyError):
        cl.compile(PLAIN, arch="sm_80", cache=False)


def test_lto_says_why_it_needs_nvfatbin(without):
    without(fatbins, "combine_images")
    with pytest.raises(cl.MissingDependencyError, match="LTO-IR, which is kept in a fatbin, n"):
        cl.compile(PLAIN, arch="sm_80", lto=True, cache=False)


def test_nothing_but_nvidias_libraries_and_headers_is_needed():
    wanted = importlib.metadata.requires("culaunch")
    names = [one.partition(">")[0] for one in wanted if 'extra == "compile"' in one]
    assert names
    assert all(name.startswith("nvidia-") for name in names), names


def test_an_image_that_cannot_be_read_is_not_kept(cache, monkeypatch):
    whole = linking.link_images

    def cut(*arguments):
        data, log = whole(*arguments)
        return data[:-200], log

    monkeypatch.setattr(linking, "link_images", cut)
    ptx = cl.compile("__global__ void k() {}", arch="compute_80", cache=cache)
    before = cache.info().entries
    with pytest.raises(cl.CompileError, match="reported success and made an image that cannot"):
        cl.link(ptx, arch="sm_80", cache=cache)
    assert cache.info().entries == before
