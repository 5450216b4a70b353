"""The edits that make mutants: one place each, and the file is Python still."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = '''\
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os


def outer(x: "int | None" = 0, *, flag=True):
    """Say 1 < 2."""

    @decorated(3)
    def inner():
        return x and not flag

    if x < 4:
        raise ValueError(f"{x + 1}")
    zip(x, separated(x, separators="", indent=4), strict=not flag)
    return call(inner, x, key=x % 5, other=2)
'''


@pytest.fixture
def edits(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from mutants.mutations import mutations_of

    path = tmp_path / "some.py"
    path.write_text(SOURCE)
    return mutations_of(path)


def test_each_edit_is_one_place_of_what_runs(edits):
    assert sorted((one.line, one.function, one.kind, one.old, one.new) for one in edits) == [
        (7, 7, "constant", "0", "1"),
        (7, 7, "constant", "True", "False"),
        (12, 10, "operator", "not flag", "bool(flag)"),
        (12, 10, "operator", "x and not flag", "(x) or (not flag)"),
        (12, 10, "returned value", "return x and not flag", "return None"),
        (14, 7, "comparison", "x < 4", "x <= 4"),
        (14, 7, "constant", "4", "5"),
        (15, 7, "check", 'raise ValueError(f"{x + 1}")', "pass"),
        (17, 7, "constant", "2", "3"),
        (17, 7, "constant", "5", "6"),
        (17, 7, "keyword", "call(inner, x, key=x % 5, other=2)", "call(inner, x, key=x % 5,)"),
        (17, 7, "keyword", "call(inner, x, key=x % 5, other=2)", "call(inner, x,other=2)"),
        (17, 7, "operator", "x % 5", "(x) // (5)"),
        (17, 7, "returned value", "return call(inner, x, key=x % 5, other=2)", "return None"),
    ]


def test_a_file_with_an_edit_differs_there_alone(edits):
    for one in edits:
        assert one.is_python(), one
        changed = one.applied().decode()
        assert changed == SOURCE[: one.start] + one.new + SOURCE[one.end :]
        assert SOURCE[one.start : one.end] == one.old
