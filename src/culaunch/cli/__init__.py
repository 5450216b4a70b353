"""The command ``culaunch``: parse, call the public API, print.

Nothing here imports ``click``. A missing extra is then one line and not a traceback.
``culaunch.cli._group`` has the group of commands.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : list of str, optional
        The words after ``culaunch``; by default those that the process was started with.
    """
    try:
        import click  # noqa: F401
    except ImportError as error:
        words = sys.argv[1:] if arguments is None else arguments
        if words and words[0] == "doctor" and set(words[1:]) <= {"--json"}:
            sys.exit(_doctor(as_json="--json" in words))
        # Not as an exception, because no code would catch it.
        print(
            f"error: the command line needs {error.name}: python -m pip install 'culaunch[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    from culaunch.cli._group import run

    sys.exit(run(arguments))


def _doctor(*, as_json: bool) -> int:
    """Report missing parts even on a machine without the packages of the command line."""
    import json

    import culaunch as cl

    found = cl.machine.doctor()
    try:
        print(json.dumps(found.to_dict(), indent=2) if as_json else found, flush=True)
    except BrokenPipeError:
        # The reader has left, as `head` does. Python would flush, and fail, again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 1 if found.broken else 0
