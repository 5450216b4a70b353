"""``culaunch fatbin``: images of several architectures in one."""

from __future__ import annotations

import click

import culaunch as cl
from culaunch.cli._input import image_source
from culaunch.cli._output import save_image


@click.command("fatbin")
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="The file to write; - for standard output.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print the names of the outputs.")
def command(images: tuple[str, ...], output: str, verbose: bool) -> None:
    """Put images of several architectures into one fatbin.

    IMAGE is a cubin or PTX, at most one of each for an architecture; - is standard input. The
    driver uses the one that fits. In Python: culaunch.compiling.fatbin.
    """
    image = cl.compiling.fatbin([image_source(name) for name in images])
    save_image(image, output, verbose)
