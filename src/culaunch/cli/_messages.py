"""How the command line says that something is wrong: one message, in red where there is red."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


def print_error(error: Exception | str) -> None:
    """Print an error that the user can fix to standard error, without a traceback."""
    message = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        # Its own text, "[Errno 2] No such file or directory: 'x'", is for programmers.
        message = f"{error.filename}: {error.strerror}"
    elif isinstance(error, OSError) and error.strerror:
        message = error.strerror
    console = Console(stderr=True, highlight=False)
    console.print(Text.assemble(("error:", "bold red"), f" {message}"), soft_wrap=True)
