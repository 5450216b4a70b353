"""``culaunch stubs``: the signatures of a kernel library's functions."""

from __future__ import annotations

import click

import culaunch as cl
from culaunch.cli._output import output_path


@click.command("stubs")
@click.argument("library", type=click.Path(), metavar="LIBRARY.so")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE.pyi",
    help="Write the stub here; by default it is printed.",
)
def command(library: str, output: str | None) -> None:
    """Write a stub (.pyi) for a library of functions.

    It is for type checkers and editors. The library records the types of its functions;
    CULAUNCH_EXPORT records the names of their parameters and their docstrings.
    """
    if output is None:
        click.echo(cl.cpp.stubs(library), nl=False)
        return
    with output_path(output) as target:
        cl.cpp.stubs(library, target)
