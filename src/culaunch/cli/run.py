"""``culaunch run``: launch a kernel from the shell."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

import culaunch as cl
from culaunch._launch.launches.launch_options import OPTIONS
from culaunch.cli._arguments import Argument, parse_argument
from culaunch.cli._input import dims, kernel_of
from culaunch.cli._messages import refused
from culaunch.cli._options import ImageFile, KernelName, driver_option
from culaunch.cli._output import save_picture

if TYPE_CHECKING:
    from collections.abc import Callable

# The kind of a launch option -> its click settings. A stream has no meaning in a shell.
_KINDS: dict[str, dict[str, Any]] = {
    "required_dims": {"required": True, "metavar": "X[,Y[,Z]]"},
    "dims": {"metavar": "X[,Y[,Z]]"},
    "bytes": {"type": int},
    "int": {"type": int},
    "switch": {"is_flag": True},
}


def _launch_options(*kinds: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare the launch options of these kinds."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed([one for one in OPTIONS.values() if one.kind in kinds]):
            word = f"--{option.name.replace('_', '-')}"
            settings = {**_KINDS[option.kind], "help": option.text}
            if not option.is_required:
                settings["default"] = option.default
            function = click.option(word, **settings)(function)
        return function

    return decorate


@click.command("run")
@click.argument("image", metavar="IMAGE|FILE.cu", type=ImageFile())
@click.argument("kernel", required=False, type=KernelName())
@_launch_options("required_dims")
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    help="An argument: 1000, 2.5, n:int32=7, in.npy, out:float32[1000]=zeros; in order.",
)
@click.option("--save", multiple=True, help="Write an array: out.npy, or out=path.npy.")
@click.option("--expect", multiple=True, help="Compare an array with a file: out=path.npy.")
@click.option("--signature", help="The parameters' C types, if the image has none.")
@_launch_options("bytes", "dims", "switch", "int")
@click.option("--device", type=int, help="The device's ordinal; 0 by default.")
@click.option("--seed", type=int, default=0, help="The seed of random arrays.")
@driver_option
@click.option("--profile", "is_profiled", is_flag=True, help="Print the profile of the launch.")
@click.option("--trace", metavar="FILE", help="Write the launch as a timeline, for Perfetto.")
@click.option("--plot", metavar="FILE", help="Draw the times of --time, or a timeline without it.")
@click.option("--sarif", metavar="FILE", help="Write the emulator's report as SARIF, for CI.")
@click.option("--time", "is_timed", is_flag=True, help="Launch often, and print how long it takes.")
def command(
    image: str,
    kernel: str | None,
    arguments: tuple[str, ...],
    save: tuple[str, ...],
    expect: tuple[str, ...],
    device: int | None,
    seed: int,
    is_profiled: bool,
    trace: str | None,
    plot: str | None,
    sarif: str | None,
    is_timed: bool,
    signature: str | None,
    **options: Any,
) -> None:
    """Launch a kernel of an image, and show its arrays.

    IMAGE is a cubin, a fatbin or PTX, - for standard input. FILE.cu is compiled for the driver in
    use. You may omit KERNEL if the image has only one; for a template it is an instance, such as
    'scale<float>'. Each --arg is a number, a .npy file, NAME:DTYPE=NUMBER, or a new array:
    NAME:DTYPE[SHAPE]=zeros, ones, arange, random or a number. A value that does not fit the
    kernel's parameter is an error. --driver emulator runs PTX without a GPU.
    """
    if sarif is not None and cl.driver.driver_name() != "emulator":
        raise click.UsageError("--sarif needs the reports of the emulator: add --driver emulator")
    for name, option in OPTIONS.items():
        if option.kind in ("required_dims", "dims"):
            options[name] = dims(name, options[name])
    found = kernel_of(image, kernel, signature)
    given = [parse_argument(text, index, seed) for index, text in enumerate(arguments)]
    arrays = {one.name: one for one in given if one.is_array}
    written = [_target(text, arrays, "--save") for text in save]
    compared = [_target(text, arrays, "--expect") for text in expect]
    with cl.driver.Device(device or 0) as where:
        values = [one.value(where.ordinal) for one in given]
        launcher = found.configure(**options)
        observed: Any = contextlib.nullcontext()
        if is_profiled or trace is not None or (plot is not None and not is_timed):
            observed = cl.profile.launches()
        try:
            with observed as profile:
                launcher(*values)
        except TypeError as error:  # an --arg that the kernel does not take
            raise refused(error) from None
        except cl.DriverError as error:
            if sarif is not None and error.report is not None:
                cl.testing.write_sarif(sarif, [error])
            raise
        cl.synchronize()
        if sarif is not None:
            cl.testing.write_sarif(sarif, [])
        for one in arrays.values():
            one.result = values[given.index(one)].numpy()
            click.echo(one.summary())
        if is_profiled:
            click.echo(str(profile))
        if trace is not None:
            profile.save(trace)
        drawn: Any = profile
        if is_timed:
            drawn = cl.profile.benchmark(launcher, *values)
            click.echo(str(drawn))
        if plot is not None:
            save_picture(drawn, plot)
    for argument, path in written:
        argument.save(path)
    same = [argument.compare(path) for argument, path in compared]  # each says how it went
    if not all(same):
        raise click.exceptions.Exit(1)


def _target(text: str, arrays: dict[str, Argument], option: str) -> tuple[Argument, str]:
    """Return an array and a file from ``out=path.npy``, or from only ``out.npy``."""
    name, equals, path = text.partition("=")
    if not equals:
        path, name = text, os.path.splitext(os.path.basename(text))[0]
    if name not in arrays:
        listed = f"the arrays are {', '.join(arrays)}" if arrays else "there are none"
        raise click.BadParameter(
            f"no --arg is an array named {name!r}; {listed}", param_hint=option
        )
    return arrays[name], path
