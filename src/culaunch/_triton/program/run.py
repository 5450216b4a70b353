"""``python -m culaunch.triton``: run a program whose Triton kernels are launched natively."""

from __future__ import annotations

import argparse
import atexit
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from culaunch._base.outputs import write_output
from culaunch._profile.recording import launches
from culaunch._triton.install import install, report
from culaunch._triton.program.as_main import run_module, run_script, run_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from culaunch._profile.profile import Profile


def main(arguments: Sequence[str]) -> int:
    """Run it as Python would, and report the launches afterwards on request.

    Parameters
    ----------
    arguments : sequence of str
        Those after ``python -m culaunch.triton``.

    Returns
    -------
    int
        0; exceptions of the program, including :class:`SystemExit`, pass through.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not options.module and not options.text and not program:
        parser.error("give a script, -m MODULE or -c CODE")
    if options.json is not None:
        options.json = options.json.absolute()  # the program may change the current folder
        if not options.json.parent.is_dir():
            parser.error(f"--json: the folder {str(options.json.parent)!r} does not exist")
    if not options.module and not options.text and not Path(program[0]).exists():
        parser.error(f"the file {program[0]!r} does not exist")
    if options.trace is not None:
        options.trace = options.trace.absolute()
        if not options.trace.parent.is_dir():
            parser.error(f"--trace: the folder {str(options.trace.parent)!r} does not exist")
    install(include=options.include or ("*",), exclude=options.exclude)
    if options.report or options.json is not None:
        # The program's exit handlers run before this, and its threads end before it. A child
        # process by `fork` prints nothing.
        atexit.register(_tell, options, os.getpid())
    if options.profile or options.trace is not None:
        block = launches()
        atexit.register(_tell_profile, options, os.getpid(), block, block.__enter__())
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
            # The program has ended, so an exception would only print a traceback.
            print(f"python -m culaunch.triton: no report: {error}", file=sys.stderr)  # noqa: T201
    if options.report:
        print(found, file=sys.stderr)  # noqa: T201


def _tell_profile(
    options: argparse.Namespace,
    process: int,
    block: AbstractContextManager[Profile],
    profile: Profile,
) -> None:
    if os.getpid() != process:
        return
    block.__exit__(None, None, None)
    if options.trace is not None:
        try:
            profile.save(options.trace)
        except OSError as error:
            print(f"python -m culaunch.triton: no timeline: {error}", file=sys.stderr)  # noqa: T201
    if options.profile:
        print(profile, file=sys.stderr)  # noqa: T201


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m culaunch.triton",
        description="Run a program with every launch of its Triton kernels native.",
        usage="%(prog)s [options] (script.py | -m module | -c text) [arguments]",
    )
    parser.add_argument(
        "--include", action="append", default=[], metavar="PATTERN",
        help="select kernels by module.name, such as 'fla.*'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN",
        help="exclude kernels by module.name; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--report", action="store_true", help="print at the end how often each kernel was launched"
    )
    parser.add_argument(
        "--profile", action="store_true",
        help="print at the end how long each kernel took, and what limits it",
    )  # fmt: skip
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="write a timeline of the launches, for Perfetto"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report to a file")
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, help="run a module as a script"
    )
    parser.add_argument(
        "-c", dest="text", nargs=argparse.REMAINDER, help="run a string of Python code"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser
