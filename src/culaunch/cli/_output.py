"""``-o -``: an output that goes to standard output."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

import culaunch as cl
from culaunch._base.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD = "-"


@contextlib.contextmanager
def output_path(output: str, suffix: str = "") -> Iterator[str]:
    """Yield the path to write to; for ``-`` one whose content goes to standard output at the end.

    Nothing is written to standard output when the block fails.
    """
    if output != STANDARD:
        yield output
        return
    # Write to a file first: code that writes images needs a path, and a failure must not leave
    # partial output in the pipe.
    with Scratch() as directory:
        path = os.path.join(directory, f"output{suffix}")
        yield path
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def save_picture(drawn: Any, path: str) -> None:
    """Write an object's drawing; the suffix of the path selects the format."""
    try:
        drawn.plot().figure.savefig(path)
    except ValueError as error:  # matplotlib lists the formats that it knows
        raise click.BadParameter(str(error), param_hint="--plot") from None


def save_image(image: cl.Image, output: str, verbose: bool) -> None:
    """Write an image, show the compiler's warnings, and the names of the outputs on request."""
    with output_path(output) as path:
        image.save(path)
    if image.log:
        click.echo(image.log, err=True)
    if verbose:
        kernels = {kernel.demangled for one in cl.inspect(image).images for kernel in one.kernels}
        archs = ", ".join(image.arch)
        click.echo(f"{output}: {image.format} for {archs}, {len(image.data)} bytes", err=True)
        for name in sorted(kernels):
            click.echo(f"  {name}", err=True)
