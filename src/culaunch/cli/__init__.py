"""The command ``culaunch``: parse, call the public API, print.

Nothing here imports ``click`` or ``rich``, so that a missing extra is one line and not a
traceback; ``culaunch.cli._group`` holds the group of commands.
"""

from __future__ import annotations

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
        import rich  # noqa: F401
    except ImportError as error:
        # Not through an exception of ours: there is nobody to catch it.
        print(
            f"error: the command line needs {error.name}: python -m pip install 'culaunch[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    from culaunch.cli._group import run

    sys.exit(run(arguments))
