"""``culaunch inspect``: what is in an image, for reading or as JSON."""

from __future__ import annotations

import json
from typing import Any

import click

import culaunch as cl
from culaunch.cli._input import image_source
from culaunch.cli._library import SUFFIX, library_lines, library_to_dict
from culaunch.cli._messages import echo, print_error


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-kernels", is_flag=True, help="List the images only, without opening them.")
def command(files: tuple[str, ...], as_json: bool, no_kernels: bool) -> int:
    """Show what is in images and in libraries that hold them.

    FILE is a cubin, a fatbin, PTX, a .culib, or an object or library with CUDA code in it; - is
    standard input. With --json, one FILE gives one object, and several give an array of them. A
    FILE that cannot be read gives one line of error and the exit code 1; the others are shown all
    the same.
    """
    found: list[dict[str, Any]] = []
    for path in files:
        inspection: cl.Inspection | None = None
        try:
            if path.endswith(SUFFIX):
                shown = library_to_dict(path)
                lines = [] if as_json else library_lines(path)
                found.append(shown)
            else:
                inspection = cl.inspect(image_source(path), kernels=not no_kernels)
                found.append(inspection.to_dict())
        except (cl.CulaunchError, OSError) as error:
            print_error(error)
            continue
        if as_json:
            continue
        if inspection is not None:
            _print(inspection, first=len(found) == 1)
        else:
            click.echo("\n".join([*[""] * (len(found) > 1), *lines]))
    if as_json and len(files) > 1:
        click.echo(json.dumps(found, indent=2))
    elif as_json and found:
        click.echo(json.dumps(found[0], indent=2))
    return 0 if len(found) == len(files) else 1


def _print(inspection: cl.Inspection, *, first: bool) -> None:
    if not first:
        click.echo()
    heading, *lines = str(inspection).split("\n")
    path, colon, rest = heading.rpartition(": ")
    echo(click.style(path, bold=True) + colon + rest)
    for line in lines:
        arch, blanks, rest = line.partition("  ")
        echo(click.style(arch, fg="cyan", bold=True) + blanks + rest)
