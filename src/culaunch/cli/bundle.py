"""``culaunch bundle``: what a program compiles, to ship with it."""

from __future__ import annotations

import os
import subprocess
import tempfile

import click

import culaunch as cl


@click.command("bundle", context_settings={"ignore_unknown_options": True})
@click.argument("output")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("--record", help="What programs wrote that ran with CULAUNCH_CACHE_RECORD=FILE.")
def command(output: str, program: tuple[str, ...], record: str | None) -> int:
    """Pack what a program compiles, or its functions, to ship it.

    OUTPUT is the directory, which $CULAUNCH_CACHE_SHIPPED names where the program runs; or a
    .culib file, with every cl.function that the program called and the images that they launch,
    for load_library, which needs no compiler. PROGRAM is a command that is run for it, as in:
    culaunch bundle shipped -- python serve.py --warm-up
    """
    if bool(program) == bool(record):
        raise click.UsageError("give a program to run, or --record, and not both")
    is_library = output.endswith(".culib")
    if record is not None:
        if is_library:
            raise click.UsageError("a record has no functions: give a program to run for a .culib")
        return _pack(output, record)
    with tempfile.TemporaryDirectory(prefix="culaunch-") as folder:
        if is_library:
            _run(program, CULAUNCH_BUNDLE=folder)
            return _join(output, folder)
        noted = os.path.join(folder, "record")
        open(noted, "w").close()
        _run(program, CULAUNCH_CACHE_RECORD=noted)
        return _pack(output, noted)


def _run(program: tuple[str, ...], **variables: str) -> None:
    environment = {**os.environ, **variables}
    code = subprocess.run(program, check=False, env=environment).returncode  # noqa: S603
    if code:
        raise click.ClickException(f"{program[0]} ended with code {code}; nothing was packed")


def _pack(output: str, record: str) -> int:
    count = cl.Cache().bundle(output, record)
    click.echo(f"packed {count} entries into {output}")
    return 0


def _join(output: str, folder: str) -> int:
    # A library for each process, in which what it traced is.
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    functions = [function for path in paths for function in cl.load_library(path)]
    if not functions:
        raise click.ClickException("the program called no cl.function that a library can hold")
    cl.save(functions, output)
    count = len({function.__name__ for function in functions})
    click.echo(f"packed {count} functions into {output}")
    return 0
