"""``culaunch bundle``: the compiled results of a program, to ship with it."""

from __future__ import annotations

import os
import subprocess

import click

import culaunch as cl
from culaunch._base.scratch import Scratch
from culaunch._base.values import counted


@click.command("bundle", context_settings={"ignore_unknown_options": True})
@click.argument("output")
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
@click.option("--record", help="A file that programs wrote with CULAUNCH_CACHE_RECORD=FILE.")
def command(output: str, program: tuple[str, ...], record: str | None) -> int:
    """Pack the code that a program compiles or calls, to ship it.

    OUTPUT is a directory or a .culib file. To use the directory, set $CULAUNCH_CACHE_BUNDLES to its
    path where the program runs. A .culib file contains every cl.function that the program called,
    every kernel that it launched, and their images; load_library reads it without a compiler.
    PROGRAM is the command to run: culaunch bundle kernels -- python serve.py --warm-up
    """
    if bool(program) == bool(record):
        raise click.UsageError("give a program to run, or --record, and not both")
    is_library = output.endswith(".culib")
    if record is not None:
        if is_library:
            raise click.UsageError("a record has no functions: give a program to run for a .culib")
        return _pack(output, record)
    with Scratch() as folder:
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
        raise click.ClickException(f"{program[0]} exited with code {code}; nothing was packed")


def _pack(output: str, record: str) -> int:
    count = cl.cache.Cache().bundle(output, record)
    click.echo(f"packed {counted(count, 'entry')} into {output}")
    return 0


def _join(output: str, folder: str) -> int:
    # One library per process, with the functions that it traced and the kernels that it launched.
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    libraries = [cl.ship.load_library(path) for path in paths]
    functions = [function for library in libraries for function in library]
    unique = _unique_kernels(libraries)
    kernels = [library.kernels.only(unique) for library in libraries]
    if not functions and not unique:
        raise click.ClickException(
            "the program called no cl.function, and launched no kernel, that a library can hold"
        )
    cl.ship.save(functions, output, kernels=kernels)
    counts = {"function": len({one.__name__ for one in functions}), "kernel": len(unique)}
    packed = [f"{count} {what}{'s' * (count > 1)}" for what, count in counts.items() if count]
    click.echo(f"packed {' and '.join(packed)} into {output}")
    return 0


def _unique_kernels(libraries: list[cl.ship.Library]) -> list[str]:
    """Return the names of kernels that no other image has one of."""
    images: dict[str, set[str]] = {}
    for library in libraries:
        for one in library.to_dict()["kernels"]:
            # The name of a member comes from its contents.
            images.setdefault(one["name"], set()).add(one["image"])
    for name, several in images.items():
        if len(several) > 1:
            click.echo(
                f"culaunch bundle: kernel {name} is left out: {len(several)} images have a kernel "
                "of that name. Save them under names of your own (cl.ship.save(..., "
                "kernels={name: kernel})), or bundle a directory",
                err=True,
            )
    return [name for name, several in images.items() if len(several) == 1]
