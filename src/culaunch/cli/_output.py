"""``-o -``: an output that goes to standard output."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING

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
    # Through a file, because what writes images needs a path, and a failure must leave nothing in
    # the pipe that its reader would take for an image.
    with Scratch() as directory:
        path = os.path.join(directory, f"output{suffix}")
        yield path
        with open(path, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def save_image(image: cl.Image, output: str, verbose: bool) -> None:
    """Write an image, show what its compiler warned of, and what was written if that is asked."""
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
