"""What docs/triton.md shows of the command and of C goes together, and is run as it stands."""

import re
import shlex
from pathlib import Path

import pytest
from runs import run_command
from sets import check_syntax

pytestmark = pytest.mark.needs("triton", "torch", "gcc")

ROOT = Path(__file__).parents[3]


def blocks(language):
    page = (ROOT / "docs" / "triton.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_the_commands_make_what_the_c_calls(tmp_path, monkeypatch):
    """The page's kernel is the one of the example that it includes."""
    example = (ROOT / "examples" / "triton_ahead_of_time.py").read_text()
    kernel = re.search(r"^@triton\.jit\n.*?\n\n\n", example, re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "kernels.py").write_text(
        f"import triton\nimport triton.language as tl\n\n\n{kernel}"
    )
    monkeypatch.chdir(tmp_path)
    commands = blocks("sh")
    assert len(commands) == 2
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "))
        assert words[0] == "culaunch"
        done = run_command(*words[1:])
        assert done.exit_code == 0, done.output
    assert {one.name for one in tmp_path.iterdir()} >= {"scale.culib", "scale.c", "scale.h"}
    (program,) = blocks("text")
    (tmp_path / "use.c").write_text(program)
    check_syntax(tmp_path / "use.c", tmp_path / "scale.c")
