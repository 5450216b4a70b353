"""Programs that run in a fork of a process with torch find what ``python PROGRAM`` gives them."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.needs("torch"), pytest.mark.slow]

FACTS = """
import atexit, os, pickle, sys, warnings
class Kept: ...
print(sys.argv, __name__, sys.path[:2], os.getcwd(), os.environ["FACT"], sys.stdin.read() == "")
print(type(pickle.loads(pickle.dumps(Kept()))) is Kept, "culaunch" in sys.modules)
atexit.register(print, "the end", file=sys.stderr)
try:
    warnings.warn("it is an error")
except UserWarning as error:
    print(error)
sys.exit(int(sys.argv[-1]))
"""


@pytest.mark.parametrize("way", ["file", "module", "text"])
def test_a_program_finds_what_it_finds_by_python_itself(run_after_torch, tmp_path, way):
    (tmp_path / "facts.py").write_text(FACTS)
    program = {"file": ["facts.py"], "module": ["-m", "facts"], "text": ["-c", FACTS]}[way]
    words = ["-W", "error", *program, "-x", "3"]
    where = {"cwd": tmp_path, "env": {**os.environ, "FACT": "one", "PYTHONPATH": str(tmp_path)}}
    wanted = subprocess.run(
        [sys.executable, *words], check=False, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, **where,
    )  # fmt: skip
    found = run_after_torch(words, **where)
    assert wanted.returncode == 3
    assert wanted.stderr == "the end\n"
    assert (found.returncode, found.stdout, found.stderr) == (3, wanted.stdout, wanted.stderr)


def test_failures_and_signals_are_seen(run_after_torch):
    failed = run_after_torch(["-c", "import torch; raise ValueError(torch.__name__)"])
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.endswith("ValueError: torch\n")
    ended = run_after_torch(["-c", "import os; os.kill(os.getpid(), 9)"])
    assert ended.returncode == -9
    late = run_after_torch(["-c", "import time; time.sleep(60)"], timeout=1)
    assert late.returncode < 0
