"""``culaunch package``: a library as a package that pip installs."""

from __future__ import annotations

import click

import culaunch as cl


@click.command("package")
@click.argument("library", type=click.Path())
@click.option("--name", required=True, help="Name of the distribution, such as my-kernels.")
@click.option("--version", required=True, help="Version of the distribution, such as 1.0.")
@click.option("--summary", help="A one-line description.")
@click.option(
    "--requires", multiple=True, metavar="SPEC", help="An extra requirement, such as 'torch>=2.6'."
)
@click.option(
    "--with-culaunch",
    is_flag=True,
    help="Write culaunch's own wheel beside it, to install both without an index.",
)
@click.option("-o", "--output", default=".", help="The directory for the wheel.")
def command(
    library: str, name: str, version: str, summary: str | None, requires: tuple[str, ...],
    with_culaunch: bool, output: str,
) -> None:  # fmt: skip
    """Build a wheel from a library with functions.

    LIBRARY is a .culib that culaunch.ship.save wrote. The path of the wheel is printed. In Python:
    culaunch.ship.package.
    """
    path = cl.ship.package(
        library,
        name=name,
        version=version,
        output=output,
        summary=summary,
        requires=requires,
        with_culaunch=with_culaunch,
    )
    click.echo(path)
    if with_culaunch:
        click.echo(f"pip install --no-index --find-links {output} {name}", err=True)
