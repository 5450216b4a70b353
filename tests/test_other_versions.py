"""The step that tests other versions: it finds them, and what it runs is there."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import other_versions

    return other_versions


def test_what_is_run_is_there(tool):
    for path in (*tool.NEWEST_TESTS, *tool.PYTHON_TESTS):
        assert (ROOT / path).exists(), path


def test_the_oldest_python_is_the_one_that_is_supported(tool):
    oldest = re.search(r'requires-python = ">=(.*)"', (ROOT / "pyproject.toml").read_text())[1]
    assert tool.PYTHONS[0] == oldest
    text = (ROOT / "docs" / "support.md").read_text()
    (row,) = re.findall(r"^\| `make pythons` \| (.*?) \|", text, re.MULTILINE)
    assert tuple(row.split(", ")) == tool.PYTHONS


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_an_interpreter_that_does_not_run_is_passed_over(tool, tmp_path, monkeypatch):
    """As pyenv's are on PATH, for a version that is not chosen."""
    program(tmp_path / "shims" / "python3.99", "echo 'not chosen' >&2; exit 127")
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert tool.find_python("3.99") is None
    program(tmp_path / "versions" / "3.99.1" / "bin" / "python3.99", "echo 3.98.0")
    assert tool.find_python("3.99") is None
    found = program(tmp_path / "versions" / "3.99.2" / "bin" / "python3.99", "echo 3.99.2")
    assert tool.find_python("3.99") == found
    on_path = program(tmp_path / "shims" / "python3.99", "echo 3.99.0")
    assert tool.find_python("3.99") == on_path
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert tool.find_python(own) == sys.executable
