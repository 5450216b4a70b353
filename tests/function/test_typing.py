"""A function keeps its signature for type checkers."""

import re
import subprocess
import sys

import pytest

USER = """
from typing import Annotated, Any
import culaunch as cl

@cl.function
def scale(x: Any, factor: float, *, n: int = 3) -> tuple[int, str]:
    return n, "a"

@cl.function(debug=True, mutates=("x",))
def other(x: Annotated[Any, cl.Array("float32", "n")]) -> None: ...

good: tuple[int, str] = scale(1, 2.0, n=3)
scale(1, "a")
scale(1)
other(3, 4)
"""


@pytest.mark.slow
@pytest.mark.needs("mypy")
def test_mypy_sees_the_signature(tmp_path):
    (tmp_path / "user.py").write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "user.py"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    lines = re.findall(r"user.py:(\d+): error", done.stdout)
    assert lines == ["13", "14", "15"], done.stdout + done.stderr
