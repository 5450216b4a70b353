"""Every snippet of the README and the documentation runs as it is written."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# They show images as compiled without the emulator, which adds PTX.
WITHOUT_A_DRIVER = {"cache", "compiling", "inspecting"}
# Other tests fill the cache that all share at the same time.
COUNTS_ENTRIES = {"cache"}
# For the whole page, as for a reader.
NEEDS = {"triton": ["triton", "torch"], "triton_libraries": ["triton", "torch"]}
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted(DOCS.rglob("*.md")) if path.parent.name not in ("dev", "_build")),
]
# Their blocks run with the rows of their tables: test_coming_from.py.
RUN_WITH_ROWS = {page for page in PAGES if page.parent.name == "coming_from"}

_spec = importlib.util.spec_from_file_location("run_page", HERE / "run_page.py")
run_page = importlib.util.module_from_spec(_spec)
sys.modules["run_page"] = run_page
_spec.loader.exec_module(run_page)


def page_name(page):
    return str(page.relative_to(DOCS if DOCS in page.parents else ROOT).with_suffix(""))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page not in RUN_WITH_ROWS and run_page.blocks(page)],
    ids=page_name,
)
def test_snippets_run(request, page, tmp_path, has, unoptimized):
    blocks = run_page.blocks(page)
    left_out, missing = [], []
    for block in blocks:
        names = [*NEEDS.get(page_name(page), ()), *block.needs]
        wanted = ["gpu" if name == "a GPU" else name for name in names]
        if lacking := [name for name in wanted if not has(name)]:
            left_out.append(str(block.line))
            missing += lacking
    if len(left_out) == len(blocks):
        pytest.skip("needs a GPU" if missing[0] == "gpu" else f"needs {missing[0]}")
    # A width that does not depend on the terminal that the tests run in.
    environment = {**os.environ, **unoptimized, "COLUMNS": "100"}
    if page.stem in COUNTS_ENTRIES:
        environment["CULAUNCH_CACHE_DIR"] = str(tmp_path / "cache of the user")
    if page.stem in WITHOUT_A_DRIVER:
        environment.pop("CULAUNCH_DRIVER", None)
    elif not has("gpu"):
        environment["CULAUNCH_DRIVER"] = "emulator"
    words = ["-W", "error", HERE / "run_page.py", page, *left_out]
    where = {"cwd": tmp_path, "env": environment, "timeout": 300}
    if "torch" in NEEDS.get(page_name(page), ()):
        result = request.getfixturevalue("run_after_torch")(words, **where)
    else:
        result = subprocess.run(
            [sys.executable, *words], check=False, capture_output=True, text=True, **where
        )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_code_that_is_not_run_is_included_from_a_file_that_is(page):
    """Code that only looks at itself goes stale: C++ and CMake come from examples."""
    fences = re.findall(r"^```(\S*)", page.read_text(), re.MULTILINE)
    shown = {
        "{literalinclude}",
        "{eval-rst}",
        "{toctree}",
        "{note}",
        "{warning}",
        "{image}",
        "{raw}",
    }
    run = {"python", "pycon", "console", "sh", "text", "json", ""}
    assert set(fences) <= run | shown
