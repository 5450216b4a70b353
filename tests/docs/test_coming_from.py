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


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_rows_run(page, tmp_path, has):
    needed = set(re.findall(r"^# needs (.+)$", page.read_text(), re.MULTILINE))
    here = {"gpu" if name == "a GPU" else name for name in needed}
    here = {name for name in here if has(name)}
    if page.stem == "triton" and not {"triton", "torch"} <= here:
        pytest.skip("needs triton")
    (tmp_path / "include").mkdir()
    environment = dict(os.environ)
    if not has("gpu"):
        environment["CULAUNCH_DRIVER"] = "emulator"
    done = subprocess.run(
        [sys.executable, "-W", "error", HERE / "run_rows.py", page, *here],
        check=False, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    left, right = map(int, done.stdout.splitlines()[-1].split())
    assert right >= RUN.get(page.stem, 0), done.stdout
    if page.stem in ("cuda_core", "tvm_ffi", "triton") and here >= needed - {"a GPU"}:
        assert left >= 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_of_cpp_are_in_the_headers(page):
    headers = "".join(path.read_text() for path in (ROOT / "include").rglob("*.h"))
    rows = re.findall(r"^\|.*\|$", page.read_text(), re.MULTILINE)
    cells = " ".join(row.rstrip("|").rpartition(" | ")[2] for row in rows)
    for name in re.findall(r"CULAUNCH_[A-Z_]+|(?:culaunch::)?ffi::(\w+)", cells):
        assert not name or re.search(rf"\b{name}\b", headers), name
