"""``python -m culaunch.triton``: run a program whose Triton kernels are launched natively."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from culaunch._base.outputs import write_output
from culaunch._triton.install import install, report
from culaunch._triton.program.as_main import run_module, run_script, run_text

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run it as Python would, and say afterwards what was launched how if that is asked for.

    Parameters
    ----------
    arguments : sequence of str
        Those after ``python -m culaunch.triton``.

    Returns
    -------
    int
        0; what the program raises, :class:`SystemExit` too, goes on from here.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not options.module and not options.text and not program:
        parser.error("give a script, -m and a module, or -c and a text")
    if options.json is not None:
        options.json = options.json.absolute()  # the program may change the current folder
        if not options.json.parent.is_dir():
            parser.error(f"--json: there is no folder {str(options.json.parent)!r}")
    if not options.module and not options.text and not Path(program[0]).exists():
        parser.error(f"there is no file {program[0]!r}")
    install(include=options.include or ("*",), exclude=options.exclude)
    if options.report or options.json is not None:
        # The program's exit handlers run before this, and its threads end before it. A child
        # process by `fork` prints nothing.
        atexit.register(_tell, options, os.getpid())
    if options.module:
        run_module(options.module)
    elif options.text:
        run_text(options.text)
    else:
        run_script(program)
    return 0


def _tell(options: argparse.Namespace, process: int) -> None:
    if os.getpid() != process:
        return
    found = report()
    if options.json is not None:
        try:
            write_output(str(options.json), f"{found.to_json()}\n".encode())
        except OSError as error:
            # The program is at its end, where an exception is a traceback and nothing else.
            print(f"python -m culaunch.triton: no report: {error}", file=sys.stderr)  # noqa: T201
    if options.report:
        print(found, file=sys.stderr)  # noqa: T201


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m culaunch.triton",
        description="Run a program with every launch of its Triton kernels native.",
        usage="%(prog)s [options] (script.py | -m module | -c text) [arguments]",
    )
    parser.add_argument(
        "--include", action="append", default=[], metavar="PATTERN",
        help="only kernels whose module.name matches, such as 'fla.*'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN",
        help="not these; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--report", action="store_true", help="say at the end which kernel was launched how often"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write that to a file")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, help="run a module as a script"
    )
    parser.add_argument("-c", dest="text", nargs=argparse.REMAINDER, help="run a text of Python")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser
