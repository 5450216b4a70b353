"""Run the blocks of one documentation page in order, as a reader would: one Python, one folder.

``python`` blocks are executed, ``pycon`` blocks are doctests in the same namespace, and the
lines ``$ culaunch ...`` of ``console`` blocks are run and their output compared (``...`` stands
for anything). Usage: ``run_page.py PAGE [FIRST_LINE_OF_A_BLOCK_TO_LEAVE_OUT ...]``.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page where the text starts."""

    language: str
    text: str
    line: int

    @property
    def needs(self) -> list[str]:
        """The capabilities that its first lines ask for: ``# needs a GPU``, ``# needs torch``."""
        names = re.findall(r"\A(?:# needs .*\n)*", self.text)[0].splitlines()
        return [name.removeprefix("# needs ").rstrip(".") for name in names]


def blocks(page: Path) -> list[Block]:
    """Find the blocks of a page that are run."""
    text = page.read_text()
    fence = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1)
        for match in fence.finditer(text)
    ]


def main(page: Path, left_out: set[int]) -> int:
    """Run a page; return the exit code."""
    # A module of its own, because ctypes and pickle look up a class's module by name.
    module = types.ModuleType("page")
    sys.modules["page"] = module
    for block in blocks(page):
        if block.line in left_out:
            continue
        where = f"{page.name}:{block.line}"
        if block.language == "python":
            # Line numbers in a traceback are those of the page.
            code = "\n" * (block.line - 1) + block.text
            exec(compile(code, str(page), "exec"), vars(module))
        elif block.language == "pycon":
            run_session(block, vars(module), where)
        else:
            run_console(block, where)
    return 0


def run_session(block: Block, namespace: dict[str, object], where: str) -> None:
    """Run an interactive session and compare what it shows."""
    test = doctest.DocTestParser().get_doctest(block.text, namespace, where, where, block.line - 1)
    test.globs = namespace
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False).failed
    if failed:
        sys.exit(f"{where}: {failed} of the session's results differ")


def run_console(block: Block, where: str) -> None:
    """Run the ``$ culaunch`` lines and compare their output; other commands are not ours."""
    checker = doctest.OutputChecker()
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.replace("\\\n", " ").partition("\n")
        words = shlex.split(command)
        if words[0] != "culaunch":
            continue
        result = subprocess.run(
            [sys.executable, "-m", *words],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if not checker.check_output(expected, result.stdout, FLAGS):
            sys.exit(f"{where}: $ {command}\nexpected:\n{expected}\ngot:\n{result.stdout}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), {int(line) for line in sys.argv[2:]}))
