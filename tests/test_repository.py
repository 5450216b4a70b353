"""The repository as a whole: versions agree, the words hold, the README tells the truth."""

import builtins
import importlib.metadata
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import culaunch as cl

ROOT = Path(__file__).parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_version_is_that_of_the_header():
    assert importlib.metadata.version("culaunch") == cl.__version__
    header = ROOT / "include" / "culaunch" / "version.h"
    numbers = re.findall(r"#define CULAUNCH_VERSION_\w+ (\d+)", header.read_text())
    assert ".".join(numbers[:3]) == cl.__version__


def test_the_changelog_has_this_version_first_after_what_is_not_released():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert next(heading for heading in headings if heading != "Unreleased") == cl.__version__
    assert "Unreleased" not in headings[1:]


@pytest.mark.slow
@pytest.mark.needs("git")
def test_no_file_names_a_machine_or_leaves_a_mark():
    check = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_words.py"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert check.returncode == 0, check.stdout


def test_the_tests_that_are_left_out_by_time_exist():
    lines = (ROOT / "tests" / "slow_tests.txt").read_text().splitlines()[1:]
    assert lines == sorted(lines)
    for line in lines:
        file, _, name = line.partition(" ")[0].partition("::")
        assert f"\ndef {name}(" in (ROOT / file).read_text(), (
            f"run tools/find_slow_tests.py: {line}"
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_and_extras_that_pages_name_exist(page):
    text = page.read_text()
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)`", text)) <= targets
    extras = PYPROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    known = set(re.findall(r"^(\w+) = ", extras, re.MULTILINE))
    for named in re.findall(r"culaunch\[([\w,]+)\]", text):
        assert set(named.split(",")) <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```|`[^`]+`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
        if not re.match(r"https?:|mailto:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_the_api_that_pages_use_exist(page):
    names = r"(?<![\w./])cl\.([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?"
    used = set(re.findall(names, page.read_text()))
    missing = []
    for name, member in used:
        found = getattr(cl, name, None)
        if found is None or (member and inspect.ismodule(found) and not hasattr(found, member)):
            missing.append((name, member))
    assert missing == []


def test_the_page_on_errors_has_every_class_and_its_bases():
    page = (ROOT / "docs" / "errors.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) ?\|", page, re.MULTILINE))
    for name, bases in rows.items():
        for base in re.findall(r"`(\w+)`", bases):
            wanted = getattr(cl, base, None) or getattr(builtins, base)
            assert issubclass(getattr(cl, name), wanted)
    ours = {name for name in cl.__all__ if name.endswith("Error")}
    assert ours - {"CulaunchError"} == set(rows)


def test_a_build_writes_nothing_into_the_source():
    """It may be read-only, or another user's checkout."""
    assert "build-dir" not in PYPROJECT
