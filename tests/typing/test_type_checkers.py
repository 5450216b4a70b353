"""Type checkers see in a user's script what is wrong with it, and nothing else."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

# The scripts use no types of these packages, and mypy spends two thirds of its time on them.
SKIPPED = "torch.*,matplotlib.*,IPython.*"
SCRIPTS = sorted(Path(__file__).parent.glob("user_*.py"))


def refused(script):
    lines = script.read_text().splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}


def by_mypy(folder):
    settings = folder / "mypy.ini"
    settings.write_text(f"[mypy]\nstrict = True\n[mypy-{SKIPPED}]\nfollow_imports = skip\n")
    words = ["--config-file", str(settings), "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, *SCRIPTS],
        check=False, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    # A script of another folder is named by a path from here.
    errors = re.findall(r"(\w+\.py):(\d+): error", done.stdout)
    return {(name, int(line)) for name, line in errors}, done.stdout + done.stderr


def by_pyright(folder):
    (folder / "pyrightconfig.json").write_text(
        json.dumps({"include": [str(one) for one in SCRIPTS], "typeCheckingMode": "standard"})
    )
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
        check=False, capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    found = [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    ]
    return set(found), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(by_mypy, id="mypy", marks=pytest.mark.needs("mypy")),
        pytest.param(by_pyright, id="pyright", marks=pytest.mark.needs("basedpyright")),
    ],
)
def test_they_refuse_what_is_wrong(check, tmp_path):
    found, output = check(tmp_path)
    expected = {(script.name, line) for script in SCRIPTS for line in refused(script)}
    assert found == expected, output
