"""``culaunch link``: relocatable images and LTO-IR to one that can be loaded."""

from __future__ import annotations

from typing import Any

import click

import culaunch as cl
from culaunch.cli._input import image_source
from culaunch.cli._options import Architectures
from culaunch.cli._output import save_image


@click.command("link")
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="The file to write; - for standard output.",
)
@click.option(
    "--arch",
    type=Architectures(),
    help="Architectures, separated by commas; the GPU's by default.",
)
@click.option("--line-info", is_flag=True, help="Keep line numbers for profilers.")
@click.option("--debug", is_flag=True, help="Link for debuggers.")
@click.option("--maxrregcount", type=int, help="The maximum number of registers per thread.")
@click.option("--option", "extra_options", multiple=True, help="An option for nvJitLink.")
@click.option("--cache/--no-cache", default=True, help="Use the user's cache.")
@click.option("-v", "--verbose", is_flag=True, help="Print the names of the outputs.")
def command(
    images: tuple[str, ...], output: str, arch: str | None, verbose: bool, **keywords: Any
) -> None:
    """Link relocatable images to one finished image.

    IMAGE is an output of `culaunch compile` with --relocatable or --lto, PTX, or an object or
    static library with device code; - is standard input. In Python: culaunch.link.
    """
    archs = None if arch is None else [name.strip() for name in arch.split(",") if name.strip()]
    image = cl.link([image_source(name) for name in images], arch=archs, **keywords)
    save_image(image, output, verbose)
