"""``culaunch compile``: CUDA source to a cubin, a fatbin or PTX."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

import culaunch as cl
from culaunch.cli._options import Architectures, driver_option
from culaunch.cli._output import STANDARD, save_image

_SUFFIXES = {".cubin": "cubin", ".fatbin": "fatbin", ".ptx": "ptx"}


@click.command("compile")
@click.argument("source", type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(allow_dash=True),
    help="The file to write: .cubin, .fatbin or .ptx; - for standard output.",
)
@click.option(
    "--arch",
    type=Architectures(),
    help="Architectures, separated by commas: sm_80,sm_90a,compute_90.",
)
@click.option("--name", "names", multiple=True, help="A name expression, such as 'scale<float>'.")
@click.option(
    "-I",
    "--include",
    "include_dirs",
    multiple=True,
    type=click.Path(),
    help="A directory with headers.",
)
@click.option("-D", "--define", "defines", multiple=True, help="A macro: NAME or NAME=VALUE.")
@click.option("--std", help="The dialect, such as c++20.")
@click.option("--fast-math", is_flag=True, help="Trade accuracy for speed.")
@click.option("--line-info", is_flag=True, help="Keep line numbers for profilers.")
@click.option("--debug", is_flag=True, help="Compile for debuggers.")
@click.option("--maxrregcount", type=int, help="The maximum number of registers per thread.")
@click.option("--extra-device-vectorization", is_flag=True, help="Vectorize more.")
@click.option(
    "--device-as-default-execution-space",
    is_flag=True,
    help="Functions without an annotation are __device__ (nvrtc only).",
)
@click.option("--relocatable", is_flag=True, help="Make relocatable code, to be linked.")
@click.option("--lto", is_flag=True, help="Make LTO-IR, to be linked.")
@click.option("--option", "extra_options", multiple=True, help="An option for the compiler.")
@click.option("--warnings-as-errors", is_flag=True, help="Fail when the compiler warns.")
@click.option(
    "--backend", type=click.Choice(["nvrtc", "nvcc"]), default="nvrtc", help="The compiler."
)
@driver_option
@click.option("--cache/--no-cache", default=True, help="Use the user's cache.")
@click.option("-v", "--verbose", is_flag=True, help="Print the names of the outputs.")
def command(source: str, output: str, arch: str | None, verbose: bool, **keywords: Any) -> None:
    """Compile CUDA source to a cubin, a fatbin or PTX.

    SOURCE is a file; - is standard input. The suffix of the output selects the format: a cubin for
    one architecture, a fatbin for any number, PTX for one virtual architecture. Standard output and
    devices accept all formats.
    """
    kind = _SUFFIXES.get(os.path.splitext(output)[1])
    if kind is None and not _takes_anything(output):
        raise click.BadParameter(
            f"the suffix selects the format: .cubin, .fatbin or .ptx (got {output!r})",
            param_hint="--output",
        )
    keywords["defines"] = dict(_define(text) for text in keywords["defines"])
    if source == STANDARD:
        text: Any = _read_standard_input()
        keywords["name"] = "<stdin>"
    else:
        # Always a path: `compile` inspects the contents of a str.
        text = _Path(source)
    archs = None if arch is None else [name.strip() for name in arch.split(",") if name.strip()]
    image = cl.compile(text, arch=archs, **keywords)
    if kind == "fatbin" and image.format != "fatbin":
        image = cl.compiling.fatbin([image])
    if kind is not None and image.format != kind:
        chosen = os.environ.get("CULAUNCH_DRIVER") == "emulator"
        emulated = chosen and arch is not None and "compute_" not in arch
        wanted = {"cubin": "one architecture sm_...", "ptx": "one architecture compute_..."}[kind]
        raise click.UsageError(
            f"--arch {','.join(image.arch)} makes a {image.format}, but a .{kind} file needs "
            f"{wanted}: name that, or the output {os.path.splitext(output)[0]}.{image.format}"
            + (", or unset CULAUNCH_DRIVER: for the emulator, PTX is added" * emulated)
        )
    save_image(image, output, verbose)


def _takes_anything(output: str) -> bool:
    """Tell whether an output has no suffix to speak of: standard output, a device, a FIFO."""
    return output == STANDARD or (os.path.exists(output) and not os.path.isfile(output))


class _Path(os.PathLike[str]):
    def __init__(self, path: str) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return self._path


def _define(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return name, value if equals else None


def _read_standard_input() -> str:
    data = sys.stdin.buffer.read()
    try:
        return data.decode() + "\n"
    except UnicodeDecodeError as error:
        raise click.UsageError(f"standard input is not text: {error.reason}") from None
