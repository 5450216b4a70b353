"""``culaunch tune``: which configuration of a kernel or a function takes the least."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

import culaunch as cl
from culaunch.cli._arguments import parse_argument
from culaunch.cli._input import dims, kernel_of, named_in, object_of_file, saved_set
from culaunch.cli._messages import refused
from culaunch.cli._options import ImageFile, KernelName, driver_option
from culaunch.cli._output import output_path, save_picture
from culaunch.cli._settings import read_settings, split_settings

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("tune")
@click.argument("target", metavar="IMAGE|FILE.cu|FILE.culib|FILE.py:NAME", type=ImageFile())
@click.argument("kernel", required=False, type=KernelName())
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="A configuration to try: grid=64,block=(16,16), or BLOCK=256,num_warps=8; repeatable.",
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    help="An argument: 1000, 2.5, n:int32=7, in.npy, out:float32[1000]=zeros; in order.",
)
@click.option(
    "--grid", help="The grid of a Triton kernel: 4, or 4,2,1; or the name of a function of FILE.py."
)
@click.option(
    "--key",
    multiple=True,
    help="A value that the choice depends on: 4096, float16; for a set, a parameter's name.",
)
@click.option(
    "--table", metavar="FILE.json", help="Store the choice; stored choices are not measured again."
)
@click.option(
    "-o", "--output", metavar="FILE.culib", help="For a set: write it, with the choice in a table."
)
@click.option("--again", is_flag=True, help="Measure even if the table has a choice.")
@click.option("--seconds", type=float, help="Time limit; the best result so far is then used.")
@click.option(
    "--repeat",
    type=int,
    default=100,
    show_default=True,
    help="The maximum number of timed runs per configuration.",
)
@click.option(
    "--flush/--no-flush", default=True, help="Whether to overwrite the L2 cache before each run."
)
@click.option("--signature", help="The parameters' C types, if the image has none.")
@click.option("--device", type=int, default=0, help="The device's ordinal; 0 by default.")
@click.option("--seed", type=int, default=0, help="The seed of random arrays.")
@driver_option
@click.option("--plot", metavar="FILE", help="Draw the configurations.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")
def command(
    target: str,
    kernel: str | None,
    configs: tuple[str, ...],
    arguments: tuple[str, ...],
    grid: str | None,
    key: tuple[str, ...],
    table: str | None,
    output: str | None,
    signature: str | None,
    device: int,
    seed: int,
    plot: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the fastest configuration of a kernel or function.

    IMAGE is a cubin, a fatbin or PTX; - is standard input. FILE.cu is compiled for the driver in
    use. You may omit KERNEL if the image has only one. Each --config has its grid and block.
    FILE.culib is a set of Triton kernels, whose variants are the configurations. With --output, the
    set stores the choice, and its calls use it. NAME of FILE.py is a function, or any object that
    `culaunch.tuning.tune` accepts. --arg is the same as in `culaunch run`. --driver emulator does
    not measure times. It counts the instructions that all threads execute, which says little about
    a GPU.
    """
    given = [parse_argument(text, index, seed) for index, text in enumerate(arguments)]
    tried = [read_settings(split_settings(text)) for text in configs]
    if not tried and ".culib" not in target:
        raise click.UsageError("give at least one --config to try")
    if output is not None and ".culib" not in target:
        raise click.UsageError("--output needs a set: FILE.culib")
    with cl.driver.Device(device) as where:
        what, blocks = _target(target, kernel, signature, grid)
        kept = None if table is None else cl.tuning.TunedConfigs(table)
        measured: list[cl.tuning.Tuning] = []
        values = [one.value(where.ordinal) for one in given]
        if ".culib" in target:  # Triton's kernels take Python's numbers, whose values are the types
            values = [_plain(one) for one in values]
        try:
            tuning = cl.tuning.tune(
                what,
                tried or None,
                values,
                grid=blocks,
                key=_key(key, what),
                table=kept,
                progress=measured.append,
                **options,
            )
        except TypeError as error:  # an argument or a configuration that it does not take
            raise refused(error) from None
        if output is not None:
            with output_path(output, ".culib") as path:
                what.with_table(key, [(values, tuning.best)]).save(path)
    if as_json:
        click.echo(json.dumps({**tuning.to_dict(), "measured": bool(measured)}, indent=1))
    else:
        click.echo(str(tuning))
        if not measured:
            click.echo(f"the result comes from {table}: --again measures again", err=True)
        elif tuning.is_emulated:
            click.echo("counted on the emulator, which says little about a GPU", err=True)
    if plot is not None:
        save_picture(tuning, plot)
    # A warning has given the reason. Print the result, but the command has still failed.
    if table is not None and (tuning.device, tuning.key) not in cl.tuning.TunedConfigs(table):
        raise click.ClickException(f"{table} was not written")


def _target(
    text: str, kernel: str | None, signature: str | None, grid: str | None
) -> tuple[Any, Any]:
    """Return the object to tune, and its grid."""
    # Only by the name: an image may have any ending, and - is standard input.
    is_image = ".py:" not in text and ".culib" not in text
    if not is_image:
        for option, value in (("KERNEL", kernel), ("--signature", signature)):
            if value is not None:
                raise click.UsageError(f"{option} needs an image")
    if ".culib" in text:
        return saved_set(text), dims("grid", grid)
    if not is_image:
        found, module = object_of_file(text)
        named = named_in(module, grid)
        return found, named if callable(named) else dims("grid", grid)
    return kernel_of(text, kernel, signature), dims("grid", grid)


def _plain(value: Any) -> Any:
    """Return a NumPy number as a Python number; anything else as it is."""
    return value.item() if type(value).__module__ == "numpy" else value


def _key(texts: Sequence[str], target: Any) -> list[Any]:
    """Read the values of a key; of a set they are names."""
    from culaunch.triton import KernelSet

    if isinstance(target, KernelSet):
        return list(texts)
    # The same words have the same types here as in --config.
    return list(read_settings(f"_{i}={text}" for i, text in enumerate(texts)).values())
