"""How the command line reports an error: one message, with a red ``error:`` on a terminal."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import click

from culaunch._base.terminal import has_colors

if TYPE_CHECKING:
    from collections.abc import Iterator


def echo(text: str, *, err: bool = False) -> None:
    """Print text, with its styles only if the stream shows colors."""
    stream = sys.stderr if err else sys.stdout
    click.echo(text, err=err, color=None if has_colors(stream) else False)


def print_error(error: Exception | str, command: click.Command | None = None) -> None:
    """Print an error that the user can fix to standard error, without a traceback.

    Parameters
    ----------
    error : Exception or str
    command : click.Command, optional
        The command that failed: its message names options, not keywords of Python.
    """
    message = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        # Its own text, "[Errno 2] No such file or directory: 'x'", is for programmers.
        message = f"{error.filename}: {error.strerror}"
    elif isinstance(error, OSError) and error.strerror:
        message = error.strerror
    if command is not None:
        message = in_options(message, command)
    echo(f"{click.style('error:', fg='red', bold=True)} {message}", err=True)


def print_usage_error(error: click.ClickException) -> None:
    """Print an error about the command line itself: the usage, then the error."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()  # no command at all: click 8.2 and newer answer with the help
        return
    context = getattr(error, "ctx", None)
    if context is not None:
        click.echo(context.get_usage(), err=True)
        click.echo(f"Try '{context.command_path} --help' for help.\n", err=True)
    print_error(error.format_message())


def refused(error: Exception) -> click.ClickException:
    """Return the exception for an error of the Python API, in the words of the command line."""
    return click.ClickException(in_options(str(error), click.get_current_context().command))


def in_options(message: str, command: click.Command) -> str:
    """Return a message of the Python API with the command's options for its keywords.

    ``arch must be`` becomes ``--arch must be``, ``backend='nvcc'`` ``--backend nvcc``, and
    ``cache=False`` ``--no-cache``.
    """
    for keyword, option, opposite in _keywords(command):
        message = re.sub(rf"\A(?:{keyword})(?= (?:must|needs|has|takes|is|'))", option, message)
        message = re.sub(rf"(?<![\w.-]){keyword}=True\b", option, message)
        message = re.sub(rf"(?<![\w.-]){keyword}=False\b", opposite or f"no {option}", message)
        message = re.sub(rf"(?<![\w.-]){keyword}=(['\"])([^'\"]*)\1", rf"{option} \2", message)
        message = re.sub(rf"(?<![\w.-]){keyword}=(?![\w=])", option, message)
    return message


def _keywords(command: click.Command) -> Iterator[tuple[str, str, str]]:
    """Yield the keyword, the option, and the option that turns it off."""
    for one in command.params:
        if isinstance(one, click.Option) and one.name:
            opposite = one.secondary_opts[0] if one.secondary_opts else ""
            yield one.name, max(one.opts, key=len), opposite
