"""The cookbook has a page for each example, and the tests that one of them shows pass."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COOKBOOK = ROOT / "docs" / "cookbook"
EXAMPLES = ROOT / "examples" / "cookbook"


def test_every_example_is_on_a_page_and_every_page_in_the_table():
    pages = {page.stem: page.read_text() for page in COOKBOOK.glob("*.md")}
    index = pages.pop("index")
    shown = set(re.findall(r"examples/cookbook/(\w+\.(?:py|ipynb))", "".join(pages.values())))
    assert shown == {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")}
    assert set(re.findall(r"^\| \[.*?\]\((\w+)\.md\)", index, re.MULTILINE)) == set(pages)
    assert len(pages) >= 12


@pytest.mark.slow
@pytest.mark.needs("nvrtc")
def test_the_tests_of_a_kernel_pass(has, tmp_path):
    environment = dict(os.environ)
    if not has("gpu"):
        environment["CULAUNCH_DRIVER"] = "emulator"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-qp", "no:cacheprovider", EXAMPLES / "test_scale.py"],
        check=False, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"(6|11) passed", done.stdout), done.stdout


def test_the_workflow_uses_commands_and_extras_that_are_there():
    workflow = (EXAMPLES / "ci_workflow.yml").read_text()
    (extras,) = re.findall(r"culaunch\[(.*?)\]", workflow)
    declared = (ROOT / "pyproject.toml").read_text()
    for extra in extras.split(","):
        assert f"\n{extra} = [" in declared
    assert "culaunch doctor" in workflow
    assert "CULAUNCH_DRIVER: emulator" in workflow
