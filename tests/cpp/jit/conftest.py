"""Fixtures of what ``culaunch/jit.h`` compiles: a program that is asked, and its cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

sys.path.insert(0, str(Path(__file__).parent))
from jit_requests import fields_of, hexed


@pytest.fixture
def cache(tmp_path):
    return cl.cache.Cache(tmp_path / "cache")


@pytest.fixture
def ask(jit_tool, cache, nvrtc):
    """Ask the program: each request is a dict of fields, with lists for those that repeat."""

    def run(command, *requests, store=cache):
        lines = []
        for request in requests:
            defaults = {"cache": store.path, "nvrtc": nvrtc}
            if not command.startswith("link") and "arch" not in request:
                defaults["arch"] = "sm_80"
            request = {**defaults, **request}
            lines += [f"{field} {hexed(one)}" for field, one in fields_of(request)]
            lines.append(command)
        done = subprocess.run(
            [jit_tool],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert done.stderr == ""
        answers = [line.split() for line in done.stdout.splitlines()]
        assert len(answers) == len(requests), done.stdout
        for answer in answers:
            assert answer[0] != "error", bytes.fromhex(answer[1]).decode()
        return [answer[0] for answer in answers]

    return run


@pytest.fixture
def folders(tmp_path):
    for name, files in {
        "first": ["one.h", "sub/two.h"],
        "second": ["three.h", "one.h", "forced.h"],
    }.items():
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#include "{name}.h"\nint x_{name};\n')
    return [tmp_path / "first", tmp_path / "second"]


CALLER = """
extern "C" __device__ float twice(float x);
template <class T> __global__ void k(T* y) { y[threadIdx.x] = twice(y[threadIdx.x]); }
extern "C" __global__ void plain(float* y, int n) { *y = twice(n); }
"""
CALLEE = 'extern "C" __device__ float twice(float x) { return 2 * x; }'


@pytest.fixture
def parts(tmp_path, cache):
    """Return a function that gives the files of a caller and of what it calls."""

    def make(**kind):
        kind = {"arch": "sm_90", **kind}
        paths = []
        for source, names in ((CALLER, ["k<float>"]), (CALLEE, ())):
            name = "_".join([*kind, *kind["arch"], str(len(names))])
            paths.append(tmp_path / f"{name}.image")
            cl.compile(source, names=names, cache=cache, **kind).save(paths[-1])
        return list(map(str, paths))

    return make
