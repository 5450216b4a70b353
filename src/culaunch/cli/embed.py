"""``culaunch embed``: an image becomes an object file that C++ code links."""

from __future__ import annotations

import os

import click

import culaunch as cl
from culaunch.cli._output import output_path


@click.command("embed")
@click.option(
    "--cubin",
    "image",
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="The image: a cubin, a fatbin or PTX.",
)
@click.option("--name", required=True, help="The name in the code's CULAUNCH_EMBED_CUBIN.")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE.o",
    help="Write an object with the image (with only --input-obj: the merged object).",
)
@click.option(
    "--input-obj",
    type=click.Path(),
    metavar="CODE.o",
    help="An object compiled from the code that embeds NAME, to merge the image into.",
)
@click.option(
    "--output-obj",
    type=click.Path(),
    metavar="MERGED.o",
    help="Write --input-obj merged with the image, whose symbols are then local.",
)
@click.option(
    "--symbol-style",
    default="culaunch",
    show_default=True,
    type=click.Choice(["culaunch", "tvm-ffi"]),
    help="tvm-ffi: for code with TVM_FFI_EMBED_CUBIN(NAME).",
)
@click.option(
    "--machine",
    type=click.Choice(["x86_64", "aarch64", "amd64", "arm64"], case_sensitive=False),
    help="The processor of the object; by default the one of --input-obj, or this machine's.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print the names of the outputs.")
def command(
    image: str,
    name: str,
    output: str | None,
    input_obj: str | None,
    output_obj: str | None,
    symbol_style: str,
    machine: str | None,
    verbose: bool,
) -> None:
    """Write an image into an object file that C++ code links.

    The code declares the image with CULAUNCH_EMBED_CUBIN(NAME).
    """
    if output is None and output_obj is None:
        raise click.UsageError("name an output: -o FILE.o, or --input-obj with --output-obj")
    if output_obj is not None and input_obj is None:
        raise click.UsageError(
            "--output-obj needs --input-obj, the object to put the image into; for an object with "
            "only the image, use -o FILE.o"
        )
    jobs: list[tuple[str, str | None]] = []
    if output is not None:
        jobs.append((output, None if output_obj is not None else input_obj))
    if output_obj is not None:
        jobs.append((output_obj, input_obj))
    for path, merge_with in jobs:
        with output_path(path) as target:
            cl.cpp.embed(
                image,
                target,
                name,
                merge_with=merge_with,
                symbol_style=symbol_style,
                machine=machine,
            )
        if verbose:
            click.echo(_report(image, path, name, merge_with), err=True)


def _report(image: str, path: str, name: str, merge_with: str | None) -> str:
    size = os.path.getsize(image)
    if merge_with is None:
        return f"{path}: {name}, {size} bytes from {image}, as hidden symbols"
    return f"{path}: {merge_with} with {name}, {size} bytes from {image}, as local symbols"
