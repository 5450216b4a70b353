"""A run of the tests removes its files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
SUITE = """
import os, pathlib, tempfile

def test_writes(tmp_path):
    caches = [os.environ[name] for name in ("CULAUNCH_CACHE_DIR", "TRITON_CACHE_DIR")]
    places = [*caches, tempfile.gettempdir()]
    for place in places:
        made = pathlib.Path(place, "made")
        made.mkdir(parents=True)
        (made / "by a test").write_text("something")
    (tmp_path / "kept").write_text("something")
    pathlib.Path(os.environ["PLACES"]).write_text("\\n".join([*places, str(tmp_path)]))
    assert OUTCOME
"""


def run(folder, outcome):
    """Run a suite of one test under this conftest; return the folders it wrote to."""
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "conftest.py").symlink_to(ROOT / "tests" / "conftest.py")
    (folder / "tests" / "test_one.py").write_text(SUITE.replace("OUTCOME", str(outcome)))
    (folder / "tmp").mkdir()
    names = ("PYTEST_", "CULAUNCH_", "TRITON_CACHE_DIR")
    inherited = {key: one for key, one in os.environ.items() if not key.startswith(names)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"),
         "--rootdir", str(folder), "-p", "no:cacheprovider", str(folder / "tests")],
        env={**inherited, "TMPDIR": str(folder / "tmp"), "PLACES": str(folder / "places")},
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == (0 if outcome else 1), done.stdout + done.stderr
    return [Path(line) for line in (folder / "places").read_text().splitlines()]


def test_a_run_that_passes_leaves_nothing(tmp_path):
    places = run(tmp_path, outcome=True)
    assert all((tmp_path / "tmp") in place.parents for place in places)
    left = [one for one in (tmp_path / "tmp").rglob("*") if one.is_file()]
    assert left == []


def test_of_a_test_that_fails_its_own_folder_stays(tmp_path):
    *others, kept = run(tmp_path, outcome=False)
    assert (kept / "kept").read_text() == "something"
    assert not any(place.exists() for place in others)
