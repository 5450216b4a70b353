"""Run a page with two columns: the code of each row, in order, each column in its own names.

``python`` blocks are for both. A block that begins with ``# needs NAME`` says what the peer of the
tables after it needs; if that is missing, the left column is only parsed. Cells that are words,
or hold code of another language, are left alone. A row that fails is shown, and the rows after it
run: one look at a machine that has the peer finds all that is wrong.

Usage: ``run_rows.py PAGE [CAPABILITY ...]``: what this machine has. Prints how many cells ran, of
the left column and of the right, and how many of the left are code.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import traceback
import types
import warnings
from pathlib import Path

_spec = importlib.util.spec_from_file_location("run_page", Path(__file__).with_name("run_page.py"))
run_page = importlib.util.module_from_spec(_spec)
sys.modules["run_page"] = run_page
_spec.loader.exec_module(run_page)

_ROW = re.compile(r"^\|(?P<left>.*?[^\\])\|(?P<right>.*)\|$")


def statements(cell):
    """Return the code of a cell with only Python; None for words and for names."""
    code = re.fullmatch(r"`([^`]+)`", cell.strip())
    if code is None or "..." in code[1]:
        return None
    try:
        tree = ast.parse(code[1])
    except SyntaxError:
        return None
    # A name alone is spoken of, not run.
    is_code = any(isinstance(node, ast.Call | ast.Assign | ast.Import) for node in ast.walk(tree))
    return code[1] if is_code else None


def rows(page):
    """Find the rows of the tables whose last column is headed "culaunch": line, left, right."""
    is_ours = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        row = _ROW.match(line)
        if row is None:
            is_ours = False
        elif row["right"].strip() == "culaunch":
            is_ours = True
        elif is_ours and not re.fullmatch(r"[-:| ]+", line):
            yield number, row["left"].replace(r"\|", "|"), row["right"].replace(r"\|", "|")


def main(page, capabilities):
    """Run them; return the exit code."""
    module = types.ModuleType("page")
    sys.modules["page"] = module
    ours, peers, peer_runs, ran = vars(module), {}, False, [0, 0]
    peers_code = failed = 0
    blocks = [block for block in run_page.blocks(page) if block.language == "python"]
    parts = [(block.line, block) for block in blocks] + [(row[0], row[1:]) for row in rows(page)]
    for line, part in sorted(parts, key=lambda one: one[0]):
        if isinstance(part, run_page.Block):
            needs = {"gpu" if name == "a GPU" else name for name in part.needs}
            runs = needs <= capabilities
            peer_runs = runs if needs else peer_runs
            if runs:
                failed += not run(part.text, line, page, ours, is_peers=bool(needs))
                peers.update(ours)
            continue
        for column, names in enumerate((peers, ours)):
            code = statements(part[column])
            if code is None:
                continue
            peers_code += not column
            if column or peer_runs:
                failed += not run(code, line, page, names, is_peers=not column)
                ran[column] += 1
    print(*ran, peers_code)
    return bool(failed)


def run(code, line, page, names, *, is_peers):
    """Run code of a page, whose line numbers a traceback then has; say whether it ran."""
    try:
        with warnings.catch_warnings():
            if is_peers:  # a peer's warnings do not matter
                warnings.simplefilter("ignore")
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
    except Exception:  # noqa: BLE001 - shown, and the rows after it run
        print(f"{page.name}:{line}: {code}\n{traceback.format_exc()}")
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), set(sys.argv[2:])))
