"""The cache key: what changes it, and what does not."""

import dataclasses

import pytest

import culaunch as cl
from culaunch._compile._backend import Job
from culaunch._compile._key import cache_key

JOB = Job("__global__ void k() {}", "kernel.cu", ("--std=c++17",), ("a", "b"))
FACTS = {"source_digest": "s", "archs": ["sm_90"], "backend": "nvrtc", "identity": "13.5.37"}


def make(job=JOB, **facts):
    return cache_key(job, **{**FACTS, **facts})


@pytest.mark.parametrize(
    "facts",
    [
        {"source_digest": "t"},
        {"archs": ["sm_90a"]},
        {"archs": ["sm_90", "compute_90"]},
        {"backend": "nvcc"},
        {"identity": "13.5.38"},
    ],
)
def test_every_fact_counts(facts):
    assert make(**facts) != make()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other.cu"},
        {"flags": ("--std=c++20",)},
        {"names": ("a",)},
        {"includes_digest": "d"},
        {"lto": True},
    ],
)
def test_every_part_of_a_job_counts(change):
    assert make(dataclasses.replace(JOB, **change)) != make()


@pytest.mark.parametrize(
    "change",
    [
        {"names": ("b", "a")},
        {"include_dirs": ("/x",)},
        {"directory": "/x"},
        {"pch": True},
        {"missing": ("m",)},
    ],
)
def test_what_does_not_matter_does_not_count(change):
    assert make(dataclasses.replace(JOB, **change)) == make()


def test_directories_count_where_the_image_names_them():
    kept = dataclasses.replace(JOB, paths=True)
    assert make(dataclasses.replace(kept, include_dirs=("/x",))) != make(kept)
    assert make(dataclasses.replace(kept, directory="/x")) != make(kept)


def test_two_builds_of_nvrtc_never_share_an_entry(cache, scale, monkeypatch):
    from culaunch._compile._nvrtc import Nvrtc

    first = cl.compile(scale, arch="sm_80", names=["scale<int>"], cache=cache)
    assert cache.info().entries == 1
    monkeypatch.setattr(Nvrtc, "identity", lambda self: "another build, of the same version")
    monkeypatch.setattr(Nvrtc, "confirm", lambda self: True)
    second = cl.compile(scale, arch="sm_80", names=["scale<int>"], cache=cache)
    assert second == first
    assert cache.info().entries == 2


def test_a_guess_of_the_library_that_was_wrong_is_corrected(cache, scale, monkeypatch):
    from culaunch._compile import _compile, _nvrtc

    _compile._backend.cache_clear()
    monkeypatch.setattr(_nvrtc, "expected_library", lambda: __file__)
    monkeypatch.setattr(_nvrtc, "library_identity", lambda path: f"identity of {path}")
    cl.compile(scale, arch="sm_80", names=["scale<int>"], cache=cache)
    identity = _compile._backend("nvrtc").identity()
    _compile._backend.cache_clear()
    assert identity == f"identity of {_nvrtc.loaded_library()}"
    assert cache.info().entries == 1
