"""The command reference, from the definitions that the commands are run by."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

from culaunch.cli._group import group

if TYPE_CHECKING:
    from collections.abc import Iterator


def command_reference() -> str:
    """Return a section in Markdown for each command."""
    context = click.Context(group, info_name="culaunch")
    return "\n".join(_group_lines(group, context, "##"))


def _group_lines(commands: click.Group, context: click.Context, heading: str) -> Iterator[str]:
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        yield from _command_lines(command, inner, heading)
        if isinstance(command, click.Group):
            yield from _group_lines(command, inner, f"{heading}#")


def _command_lines(command: click.Command, context: click.Context, heading: str) -> Iterator[str]:
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    yield from (f"{heading} {context.command_path}", "", "```text", usage, "```", "")
    yield from (_paragraphs(command.help or ""), "")
    records = [
        record
        for param in command.get_params(context)
        if (record := param.get_help_record(context)) and record[1] and "--help" not in param.opts
    ]
    if not records:
        return
    yield from ("| option | |", "|---|---|")
    for options, text in records:
        yield f"| `{_cell(options)}` | {_cell(_marked(text))} |"
    yield ""


def _paragraphs(text: str) -> str:
    # \b keeps the line breaks of a paragraph in a terminal; a page breaks lines by itself.
    return _marked(inspect.cleandoc(text.replace("\b\n", "")))


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", r"\|")


def _marked(text: str) -> str:
    """Mark options and names as code, for Markdown would read their dashes and underscores."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [
        re.sub(r"(?<![\w-])(--\w[\w-]*|__\w+__)", r"`\1`", part).replace("<", "&lt;")
        for part in parts[::2]
    ]
    return "".join(parts)
