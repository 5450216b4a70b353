"""Options and arguments that several commands have, with their completions for a shell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

import culaunch as cl
from culaunch._base.driver_choice import VARIABLE, check_choice

if TYPE_CHECKING:
    from collections.abc import Iterator

# The completions for --arch. The compiler decides which ones it knows; a test compares the two.
NUMBERS = (75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121)
_DRIVERS = ("cuda", "emulator")


class ImageFile(click.Path):
    """The path of an image, or - for standard input; ``KERNEL`` after it completes to its names."""

    def __init__(self) -> None:
        super().__init__(allow_dash=True)


class KernelName(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A kernel of the command's ``IMAGE``."""

    name = "kernel"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002  (click's signature)
        incomplete: str,
    ) -> list[CompletionItem]:
        """List the kernels of the image before it on the command line."""
        image = str(ctx.params.get("image") or ctx.params.get("target"))
        try:
            found = cl.inspect(image).images
        except (cl.CulaunchError, OSError, ValueError):
            return []  # source, or nothing that has kernels
        names = dict.fromkeys(_short(kernel) for one in found for kernel in one.kernels)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _short(kernel: cl.image.KernelInfo) -> str:
    """Return the least text that names a kernel: without the types of its parameters."""
    name = kernel.demangled.removeprefix("void ")
    return name.partition("(")[0] if "(" in name and "::(" not in name else name


class Architectures(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """Architectures, separated by commas. A shell completes the last one."""

    name = "arch"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  (click's signature)
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """List the architectures, without the compiler: a shell waits for the answer."""
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(before + comma + name)
            for name in _architectures()
            if name.startswith(last)
        ]


def _architectures() -> Iterator[str]:
    for kind in ("sm", "compute"):
        for number in NUMBERS:
            # Code for only one architecture, and for one family.
            suffixes = ["", *(["a"] if number >= 90 else []), *(["f"] if number >= 100 else [])]
            yield from (f"{kind}_{number}{suffix}" for suffix in suffixes)


class _Driver(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    name = "driver"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            check_choice(value, "the driver")
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  (click's signature)
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        names = [name for name in _DRIVERS if name.startswith(incomplete)]
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, "file")]


def _choose(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None and not ctx.resilient_parsing:
        # Where every part of culaunch looks, and the processes that a command starts.
        os.environ[VARIABLE] = value


driver_option = click.option(
    "--driver",
    type=_Driver(),
    metavar="NAME",
    is_eager=True,
    expose_value=False,
    callback=_choose,
    help="The driver: cuda, emulator, or the path of a library; $CULAUNCH_DRIVER by default.",
)
