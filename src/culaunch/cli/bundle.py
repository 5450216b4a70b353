"""``culaunch bundle``: what a program compiles, as a directory to ship with it."""

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
    """Pack what a program compiles into a directory to ship.

    OUTPUT is the directory, which $CULAUNCH_CACHE_SHIPPED names where the program runs; PROGRAM is
    a command that is run for it, as in: culaunch bundle shipped -- python serve.py --warm-up
    """
    if bool(program) == bool(record):
        raise click.UsageError("give a program to run, or --record, and not both")
    if record is not None:
        return _pack(output, record)
    with tempfile.TemporaryDirectory(prefix="culaunch-") as folder:
        noted = os.path.join(folder, "record")
        open(noted, "w").close()
        environment = {**os.environ, "CULAUNCH_CACHE_RECORD": noted}
        code = subprocess.run(program, check=False, env=environment).returncode  # noqa: S603
        if code:
            raise click.ClickException(f"{program[0]} ended with code {code}; nothing was packed")
        return _pack(output, noted)


def _pack(output: str, record: str) -> int:
    count = cl.Cache().bundle(output, record)
    click.echo(f"packed {count} entries into {output}")
    return 0
