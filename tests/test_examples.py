"""Every example runs as it stands: ``python examples/NAME.py``.

A comment ``# needs NAME`` among an example's first lines names a capability (``a GPU``,
``torch``, ``nvcc``). Without a GPU the others run on the emulated driver.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(
    path
    for path in [*FOLDER.glob("*.py"), *(FOLDER / "cookbook").glob("*.py")]
    if not path.name.startswith("test_")
)
# They compile with CUB, or with Triton for several architectures.
SLOW = {"cub_reduce", "triton_ahead_of_time"}


def needs(path):
    head = "".join(path.read_text().splitlines(keepends=True)[:20])
    names = re.findall(r"^# needs (.+?)\.?$", head, re.MULTILINE)
    return ["gpu" if name == "a GPU" else name for name in names]


@pytest.mark.sweep(8)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=path.stem,
            marks=[pytest.mark.needs(*needs(path)), *[pytest.mark.slow] * (path.stem in SLOW)],
        )
        for path in EXAMPLES
    ],
)
def test_example_runs(request, path, tmp_path, has, unoptimized):
    environment = {**os.environ, **unoptimized}
    if not has("gpu"):
        environment["CULAUNCH_DRIVER"] = "emulator"
    words, where = ["-W", "error", path], {"cwd": tmp_path, "env": environment, "timeout": 300}
    if {"torch", "tvm_ffi"} & set(needs(path)):
        result = request.getfixturevalue("run_after_torch")(words, **where)
    else:
        result = subprocess.run(
            [sys.executable, *words], check=False, capture_output=True, text=True, **where
        )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.strip(), "an example says what it did"
