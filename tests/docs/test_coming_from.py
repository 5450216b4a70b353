"""The pages for those who come from other libraries: every row of their tables runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = [
    page for page in sorted((ROOT / "docs" / "coming_from").glob("*.md")) if page.stem != "index"
]
# How many cells of the culaunch column are code that runs, at the least.
RUN = {
    "cuda_core": 24, "cupy": 22, "mlx": 5, "numba": 13, "pycuda": 16, "torch": 4, "triton": 9,
}  # fmt: skip


# Packages that the left column needs, besides a GPU.
PEERS = {
    "cuda_core": ("cuda.core",),
    "cupy": ("cupy",),
    "mlx": ("mlx", "mlx-cuda"),
    "numba": ("numba_cuda", "numba-cuda-compiler"),
    "pycuda": ("pycuda",),
    "torch": ("torch", "tvm_ffi", "g++", "ninja", "nvcc"),
    "triton": ("triton", "torch"),
    "tvm_ffi": ("tvm_ffi", "g++"),
}
# Packages that the right column needs besides culaunch.
OURS = {"torch": ("torch",), "triton": ("triton", "torch")}
# TVM-FFI imports it.
IMPORT_TORCH = {"torch", "triton", "tvm_ffi"}
# The left columns of these pages need no GPU, unless they say so.
RUN_ANYWHERE = {"cuda_core", "triton", "tvm_ffi"}


@pytest.fixture
def run_rows(request, tmp_path, has, unoptimized):
    """Return what runs the rows of a page: how many ran left and right, how many left are code."""

    def run(page):
        needed = set(re.findall(r"^# needs (.+)$", page.read_text(), re.MULTILINE))
        here = {"gpu" if name == "a GPU" else name for name in needed}
        here = {name for name in here if has(name)}
        (tmp_path / "include").mkdir()
        environment = {**os.environ, **unoptimized, "TORCH_EXTENSIONS_DIR": str(tmp_path)}
        if not has("gpu"):
            environment["CULAUNCH_DRIVER"] = "emulator"
        words = ["-W", "error", HERE / "run_rows.py", page, *here]
        where = {"cwd": tmp_path, "env": environment, "timeout": 300}
        if has("torch") and page.stem in IMPORT_TORCH:
            done = request.getfixturevalue("run_after_torch")(words, **where)
        else:
            done = subprocess.run(
                [sys.executable, *words], check=False, capture_output=True, text=True, **where
            )
        assert done.returncode == 0, done.stdout + done.stderr
        return tuple(map(int, done.stdout.splitlines()[-1].split()))

    return run


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_rows_run(page, run_rows, has):
    for name in OURS.get(page.stem, ()):
        if not has(name):
            pytest.skip(f"needs {name}")
    left, right, _ = run_rows(page)
    assert right >= RUN.get(page.stem, 0)
    if page.stem in RUN_ANYWHERE and all(map(has, PEERS[page.stem])):
        assert left >= 2


@pytest.mark.slow
@pytest.mark.gpu
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.needs(*PEERS[page.stem])) for page in PAGES],
    ids=lambda page: page.stem,
)
def test_all_rows_of_the_peer_run(page, run_rows):
    left, _, code = run_rows(page)
    assert left == code > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_cpp_are_in_the_headers(page):
    headers = "".join(path.read_text() for path in (ROOT / "include").rglob("*.h"))
    rows = re.findall(r"^\|.*\|$", page.read_text(), re.MULTILINE)
    cells = " ".join(row.rstrip("|").rpartition(" | ")[2] for row in rows)
    for name in re.findall(r"CULAUNCH_[A-Z_]+|(?:culaunch::)?ffi::(\w+)", cells):
        assert not name or re.search(rf"\b{name}\b", headers), name


@pytest.mark.needs("mlx")
def test_names_of_mlx_are_in_its_reference():
    import mlx.core as mx

    rows = (ROOT / "docs" / "coming_from" / "mlx.md").read_text()
    made = re.search(r"`made = mx\.fast\.cuda_kernel\((.*?)\)`", rows)[1]
    called = re.search(r"= add\((.*?)\)` \|", rows)[1]
    reference = mx.fast.cuda_kernel.__doc__
    names = re.findall(r"(\w+)=", f"{made} {called}")
    assert len(names) == 9
    for name in names:
        assert re.search(rf"\b{name}\b(:|=)", reference), name
    for name in re.findall(r"precompiled_cuda_kernel\((.*?)\)", rows)[0].split(", ")[:2]:
        assert name.partition("=")[0] in mx.fast.precompiled_cuda_kernel.__doc__
