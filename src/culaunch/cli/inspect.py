"""``culaunch inspect``: the contents of an image, for reading or as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import Any

import click

import culaunch as cl
from culaunch._base.outputs import write_output
from culaunch._base.terminal import is_terminal
from culaunch._base.values import counted
from culaunch.cli._input import image_source
from culaunch.cli._library import SUFFIX, library_lines, library_to_dict
from culaunch.cli._messages import echo, print_error

# A longer listing scrolls its beginning away; a summary says how to get the part that is wanted.
_LONGEST = 200


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-kernels", is_flag=True, help="List the images only, without opening them.")
@click.option(
    "--filter",
    "pattern",
    metavar="NAME",
    help="Show only kernels and variables with NAME in theirs; * and ? are wildcards.",
)
@click.option("--all", "is_long", is_flag=True, help="Print every row, also to a terminal.")
@click.option(
    "--extract",
    "folder",
    type=click.Path(file_okay=False),
    metavar="DIRECTORY",
    help="Write each image (with --filter, each that is shown) to a file of its own.",
)
def command(
    files: tuple[str, ...],
    as_json: bool,
    no_kernels: bool,
    pattern: str | None,
    is_long: bool,
    folder: str | None,
) -> int:
    """List the kernels in images, objects and libraries.

    FILE is a cubin, a fatbin, PTX, a .culib, or an object or library with CUDA code; - is standard
    input. On a terminal, names are shortened to fit, and a file with many kernels is summarized. A
    pipe gets all rows in full. --json prints an object for one FILE, and an array for several. If a
    FILE cannot be read, it is reported in one line, the others are still shown, and the exit code
    is 1.
    """
    if no_kernels and pattern is not None:
        raise click.UsageError("--filter needs the kernels, which --no-kernels leaves unread")
    found: list[dict[str, Any]] = []
    for path in files:
        lines: list[str] = []
        try:
            if path.endswith(SUFFIX):
                if pattern is not None or folder is not None:
                    raise click.UsageError("--filter and --extract are for images, not for .culib")
                found.append(library_to_dict(path))
                lines = [] if as_json else library_lines(path)
            else:
                inspection = _inspect(path, not no_kernels, pattern, folder)
                found.append(inspection.to_dict())
                lines = [] if as_json else _lines(inspection, is_long, pattern)
        except (cl.CulaunchError, OSError) as error:
            print_error(error)
            continue
        if lines:
            echo("\n".join([*[""] * (len(found) > 1), *lines]))
    if as_json and len(files) > 1:
        click.echo(json.dumps(found, indent=2))
    elif as_json and found:
        click.echo(json.dumps(found[0], indent=2))
    return 0 if len(found) == len(files) else 1


def _inspect(
    path: str, kernels: bool, pattern: str | None, folder: str | None
) -> cl.image.Inspection:
    """Inspect a file, and write its images to a directory."""
    if folder is None:
        inspection = cl.inspect(image_source(path), kernels=kernels)
        return inspection if pattern is None else inspection.filter(pattern)
    os.makedirs(folder, exist_ok=True)
    stem = "stdin" if path == "-" else os.path.basename(path)
    shown: list[cl.image.ImageInfo] = []
    number = 0

    def write(image: cl.image.ImageInfo, data: bytes) -> None:
        nonlocal number
        number += 1
        one = cl.image.Inspection(path, image.format, (image,))
        if pattern is not None:
            one = one.filter(pattern)
        if one.images:
            shown.extend(one.images)
            name = f"{stem}.{number}.{image.arch}.{image.format}"
            # In a fatbin, zeros may follow a text.
            text = data.rstrip(b"\0") if image.format == "ptx" else data
            write_output(os.path.join(folder, name), text)

    inspection = cl.inspect(image_source(path), kernels=kernels, visit=write)
    click.echo(f"{path}: wrote {len(shown)} of {counted(number, 'image')} to {folder}", err=True)
    return cl.image.Inspection(inspection.path, inspection.format, tuple(shown))


def _lines(inspection: cl.image.Inspection, is_long: bool, pattern: str | None) -> list[str]:
    on_terminal = is_terminal(sys.stdout)
    width = shutil.get_terminal_size().columns if on_terminal and not is_long else None
    heading, *lines = inspection.table(width).split("\n")
    hint = []
    if len(lines) > _LONGEST and on_terminal and not is_long and pattern is None:
        count = len(lines)
        heading, *lines = inspection.summary().split("\n")
        hint = ["", f"--filter NAME shows some kernels, --all shows all {count:,} rows"]
    path, colon, rest = heading.rpartition(": ")
    styled = [click.style(path, bold=True) + colon + rest]
    for line in lines:
        arch, blanks, rest = line.partition("  ")
        styled.append(click.style(arch, fg="cyan", bold=True) + blanks + rest)
    return styled + hint
