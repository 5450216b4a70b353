"""Manifests of Triton kernels, made by hand: what no compiler gives, a file may still say."""

from __future__ import annotations

import copy
import os
import subprocess
from pathlib import Path
from typing import Any

from cuda_headers import cuda_include

from culaunch._library import library_bytes
from culaunch.triton import KernelSet

MEMBERS = {"images/a.cubin": b"\x7fELF\x02\x01\x01", "images/b.cubin": b"\x7fELF\x02\x01\x02"}
LAUNCH = {
    "name": "k", "triton_version": "3.6.0", "num_warps": 4, "num_ctas": 1, "shared": 0,
    "global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0,
    "profile_scratch_align": 1, "launch_cooperative_grid": False, "launch_pdl": False,
    "descriptors": [],
}  # fmt: skip


# Signatures of an addition: of single and of half precision.
FLOATS = "*fp32:16, *fp32:16, *fp32:16, i32"
HALVES = "*fp16:16, *fp16:16, *fp16:16, i32:16"


def parameter(name: str, **more: Any) -> dict[str, Any]:
    plain = {"annotation": "", "constexpr": False, "const": False, "specialize": True}
    return {"name": name, **plain, "align": True, **more}


def variant(**more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "arch": "sm_80", "types": ["*fp32", "i32"], "keys": ["D", ""], "constants": {"BLOCK": 64},
        "options": {}, "launch": copy.deepcopy(LAUNCH), "image": "images/a.cubin", "ptx": None,
    }  # fmt: skip
    return {**plain, **more}


def function(**more: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "kind": "triton", "name": "k",
        "parameters": [parameter("x"), parameter("n"), parameter("BLOCK", constexpr=True)],
        "variants": [variant()], "tuning": None,
    }  # fmt: skip
    return {**plain, **more}


def load(entry: dict[str, Any], version: int = 2, members: dict[str, bytes] = MEMBERS) -> KernelSet:
    return KernelSet.load(library_bytes([entry], members, "test", version))


def changed(entry: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    entry = copy.deepcopy(entry)
    target: Any = entry
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    return entry


# For C that runs.
C_WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
# As strict as a project may be that compiles it with its own sources.
FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow",
         "-Wcast-qual", "-Wundef", "-Werror", "-fsyntax-only"]  # fmt: skip
STUB = Path(__file__).parent / "stub_cuda"


def check_syntax(*files: Path, language: str = "c", quick: bool = False) -> None:
    """Compile, without code: every warning is an error, which the assertion shows."""
    compiler = {"c": ["gcc", "-std=c99"], "c++": ["g++", "-std=c++17", "-xc++"]}[language]
    include = STUB if quick else cuda_include()
    for file in files:
        assert file.exists()
    done = subprocess.run(
        [*compiler, *FLAGS, f"-isystem{include}", *map(os.fspath, files)],
        capture_output=True, text=True, check=False,
    ) if files else None  # fmt: skip
    assert done is None or done.returncode == 0, done.stderr
