"""The notebook of the cookbook runs: its cells by themselves, and by Jupyter if that is here."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "cookbook" / "tour.ipynb"
# As Jupyter does: what a cell ends with is shown, as HTML if it has it.
RUN = """
import ast, json, sys
names = {"__name__": "__main__"}
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] != "code":
        continue
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        html = getattr(value, "_repr_html_", None)
        print(html() if html else "" if value is None else repr(value))
"""


@pytest.fixture
def environment(has):
    driver = {} if has("gpu") else {"CULAUNCH_DRIVER": "emulator"}
    return {**os.environ, **driver}


@pytest.mark.slow
@pytest.mark.needs("nvrtc")
def test_its_cells_run(environment, tmp_path, has):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, NOTEBOOK],
        check=False, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("<table") + done.stdout.count("<pre") >= 2
    assert "@@@@" in done.stdout
    assert "argument 1 of mandelbrot" in done.stdout
    # The profile is a table with a row for each of the two grids.
    assert ">1x24<" in done.stdout
    assert ">2x24<" in done.stdout
    # The emulator's counts by line, and the race that it finds once: not in the fixed kernel.
    assert "mandelbrot: 1 launch" in done.stdout
    assert done.stdout.count("race: a thread reads shared address 0xfc") == 1
    assert "kernel.cu:5" in done.stdout
    if has("matplotlib"):
        assert "<svg" in done.stdout


@pytest.mark.slow
@pytest.mark.needs("nbclient", "ipykernel")
def test_jupyter_runs_it(environment, tmp_path):
    program = (
        "import sys, nbformat, nbclient\n"
        "nbclient.NotebookClient(nbformat.read(sys.argv[1], 4), timeout=100).execute()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, NOTEBOOK],
        check=False, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_it_is_kept_without_results():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    for cell in cells:
        assert not cell.get("outputs"), "clear the results before it is committed"
        assert cell.get("execution_count") is None
        if cell["cell_type"] == "code":
            ast.parse("".join(cell["source"]))
