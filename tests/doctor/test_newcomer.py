"""A newcomer's first ten minutes, with each set of extras: it works, or says what to do."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "first_ten_minutes.py"
pytest.importorskip("packaging")

_spec = importlib.util.spec_from_file_location("first_ten_minutes", TOOL)
tool = importlib.util.module_from_spec(_spec)
sys.modules["first_ten_minutes"] = tool
_spec.loader.exec_module(tool)


def _needs(extras):
    """Return the marks for what an extra brings that not every machine with tests has."""
    return [pytest.mark.needs("fsspec", "cryptography")] if "remote" in extras.split(",") else []


@pytest.mark.slow
@pytest.mark.needs("click", "numpy", "nvrtc", "tvm_ffi", "installed-wheel")
@pytest.mark.parametrize(
    "extras",
    [pytest.param(one, id=one or "none", marks=_needs(one)) for one in tool.STAGES],
)
def test_first_ten_minutes(extras, tmp_path, unoptimized):
    environment = {**os.environ, **unoptimized, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, TOOL, extras],
        check=False, capture_output=True, text=True, env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_extra_for_users_has_a_stage():
    text = (TOOL.parents[1] / "pyproject.toml").read_text()
    extras = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    declared = {line.split(" = ")[0] for line in extras.splitlines() if " = " in line}
    played = {extra for stage in tool.STAGES for extra in stage.split(",")} - {""}
    assert declared - {"all", "bench", "docs", "suite", "test", "dev"} == played
