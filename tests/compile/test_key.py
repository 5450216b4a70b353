"""The cache key: what changes it, and what does not."""

import dataclasses
import os
import subprocess
import sys

import pytest

import culaunch as cl
from culaunch._compile import backend, key, nvrtc, options

JOB = backend.Job("__global__ void k() {}", "kernel.cu", ("--std=c++17",), ("a", "b"))
FACTS = {"source_digest": "s", "archs": ["sm_90"], "backend": "nvrtc", "identity": "13.5.37"}


def make(job=JOB, **facts):
    return key.cache_key(job, **{**FACTS, **facts})


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
    first = cl.compile(scale, arch="sm_80", names=["scale<int>"], cache=cache)
    assert cache.info().entries == 1
    monkeypatch.setattr(nvrtc.Nvrtc, "identity", lambda self: "another build, of the same version")
    second = cl.compile(scale, arch="sm_80", names=["scale<int>"], cache=cache)
    assert second == first
    assert cache.info().entries == 2


def test_the_library_in_the_key_is_the_one_that_is_loaded(cache, scale):
    """Also when the process has loaded another build, as frameworks do."""
    program = """
        import ctypes, os, shutil, sys
        import culaunch as cl
        maps = lambda: [line.split()[-1] for line in open("/proc/self/maps")]
        loaded = lambda: {os.path.realpath(path) for path in maps() if "libnvrtc.so" in path}
        cl.compile(sys.argv[2], arch="sm_80", cache=False)
        (own,) = loaded()
        other = os.path.join(sys.argv[1], os.path.basename(own))
        shutil.copy(own, other)
        ctypes.CDLL(other)
        image = cl.compile(sys.argv[2], arch="compute_80", names=["scale<int>"], cache=False)
        print(loaded() == {own, other})
    """
    lines = "\n".join(line.strip() for line in program.strip().splitlines())
    command = [sys.executable, "-c", lines, cache.path, scale]
    os.makedirs(cache.path, exist_ok=True)
    assert subprocess.check_output(command, text=True) == "True\n"


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    ("keywords", "extra"),
    [
        ({"std": "c++17"}, ["-std=c++17"]),
        ({"std": "c++17"}, ["--std=c++17"]),
        ({"defines": {"X": 1}}, ["-DX=1"]),
        ({"defines": {"X": 1}}, ["--define-macro=X=1"]),
        ({"defines": ["X"]}, ["-DX"]),
        ({"fast_math": True}, ["-use_fast_math"]),
        ({"fast_math": True, "defines": {"X": 1}}, ["-DX=1", "--use_fast_math"]),
        ({"maxrregcount": 32}, ["-maxrregcount=32"]),
        ({"line_info": True}, ["-lineinfo"]),
        ({"debug": True}, ["-G"]),
    ],
)
def test_an_option_is_the_same_however_it_is_given(cache, scale, keywords, extra):
    first = cl.compile(scale, arch="sm_80", names=["scale<int>"], cache=cache, **keywords)
    second = cl.compile(scale, arch="sm_80", names=["scale<int>"], cache=cache, extra_options=extra)
    assert second == first
    assert cache.info().entries == 1


@pytest.mark.parametrize(
    "extra",
    [
        ["-DX=1", "-DX=2"],
        ["-DX=1", "-UX"],
        ["-U", "X", "-DX=1"],
        ["-DX=1,Y"],
        ["-Xptxas", "-G"],
        ["-D", "-G"],
        ["-std=c++17", "-std=c++20"],
        ["-maxrregcount=0"],
        ["-maxrregcount=x"],
    ],
)
def test_options_with_an_order_of_their_own_keep_it(extra):
    flags = options.make_options(extra_options=extra).nvrtc_flags()
    assert " ".join(flags).replace("--define-macro=", "-D").replace("--std", "-std") == " ".join(
        extra
    )


def test_a_checkout_counts_where_line_information_is_asked_for_by_an_option(cache, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        source = tmp_path / name / "k.cu"
        source.write_text("__global__ void k(int* x) { *x = 1; }")
        cl.compile(source, arch="compute_80", cache=cache, extra_options=["-lineinfo"])
    assert cache.info().entries == 2
