"""``culaunch triton``: compile a Triton kernel to a library, or to C, without a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from culaunch._base.waiting import waiting
from culaunch.cli._input import named_in, object_of_file, saved_set
from culaunch.cli._messages import refused
from culaunch.cli._options import Architectures
from culaunch.cli._output import output_path
from culaunch.cli._settings import read_options, read_settings, split_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch.triton import KernelSet


@click.command("triton")
@click.argument("kernel", metavar="FILE.py:KERNEL|FILE.culib", type=click.Path())
@click.option(
    "--signature",
    "signatures",
    multiple=True,
    help='Types of the arguments, such as "*fp32:16, *fp32:16, i32"; may be repeated.',
)
@click.option(
    "--arch",
    "arches",
    multiple=True,
    type=Architectures(),
    help="sm_80, sm_90a, ...; compute_80 stores only PTX. Repeat it, or separate with commas.",
)
@click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a constant of the kernel: a number, text, tl.float16, (1, 2), (a=1, b=2).",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Constants and options of an additional configuration.",
)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="A compile option of Triton."
)
@click.option("--num-warps", type=int, help="Warps of a block; Triton's default is 4.")
@click.option("--num-stages", type=int, help="Stages of software pipelining.")
@click.option("--num-ctas", type=int, help="Blocks of a cluster.")
@click.option(
    "--grid",
    metavar="EXPRESSION",
    help='The grid, such as "cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N), 1, 1"; or the name of a function '
    "of FILE.py.",
)
@click.option("--keep-ptx", is_flag=True, help="Keep the PTX beside each cubin.")
@click.option("-o", "--output", type=click.Path(), metavar="FILE.culib", help="Write a library.")
@click.option(
    "--c-output", type=click.Path(), metavar="FILE.c", help="Write FILE.c and FILE.h for C and C++."
)
@click.option(
    "--name", metavar="NAME", help="Prefix of all names in C; the kernel's own name by default."
)
@click.option("--prefix", default="", metavar="TEXT", help="Text before that name in C.")
@click.option(
    "--object",
    "as_object",
    is_flag=True,
    help="Write the images to FILE_images.o, to be linked, and not into FILE.c.",
)
@click.option(
    "--machine",
    type=click.Choice(["x86_64", "aarch64", "amd64", "arm64"]),
    help="The processor of that object; by default this machine's.",
)
def command(
    kernel: str,
    signatures: tuple[str, ...],
    arches: tuple[str, ...],
    constants: tuple[str, ...],
    configs: tuple[str, ...],
    options: tuple[str, ...],
    num_warps: int | None,
    num_stages: int | None,
    num_ctas: int | None,
    grid: str | None,
    keep_ptx: bool,
    output: str | None,
    c_output: str | None,
    name: str | None,
    prefix: str,
    as_object: bool,
    machine: str | None,
) -> None:
    """Compile the Triton kernel KERNEL of FILE.py ahead of time. No GPU is needed.

    FILE.py is imported to find the kernel. To write C for a kernel that is already compiled, name
    FILE.culib (FILE.culib:KERNEL if it has several) and --c-output.
    """
    if output is None and c_output is None:
        raise click.UsageError("name an output: -o FILE.culib, or --c-output FILE.c")
    given_for_c = {"--name": name, "--prefix": prefix, "--object": as_object}
    for option, value in given_for_c.items():
        if value and c_output is None:
            raise click.UsageError(
                f"{option} applies to the output in C: it needs --c-output FILE.c"
            )
    if machine is not None and not as_object:
        raise click.UsageError("--machine applies to the object with the images: it needs --object")
    # A library holds compiled code, so options for a compiler would have no effect.
    if ".culib" in kernel:
        extra = (signatures, arches, constants, configs, options, grid, output)
        if any(extra) or keep_ptx or {num_warps, num_stages, num_ctas} != {None}:
            raise click.UsageError("a library is already compiled: it accepts only --c-output")
        kernels = saved_set(kernel)
    else:
        if not signatures or not arches:
            raise click.UsageError("--signature and --arch are needed to compile")
        given = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
        kernels = _compiled(
            kernel, signatures, arches, constants, configs, grid,
            {"keep_ptx": keep_ptx,
             **read_options(options, {k: v for k, v in given.items() if v is not None})},
        )  # fmt: skip
    # Find the parts that C cannot express before writing anything.
    written = []
    if c_output is not None:
        paths = kernels.write_c(
            c_output, name=name, prefix=prefix, as_object=as_object, machine=machine
        )
        written = [str(path) for path in paths]
    if output is not None:
        with output_path(output, ".culib") as path:
            kernels.save(path)
        written.insert(0, output)
    for variant in kernels.variants:
        click.echo(f"{kernels.name}  {variant}", err=True)
    click.echo(f"wrote {', '.join(written)}", err=True)


def _compiled(
    kernel: str,
    signatures: Sequence[str],
    arches: Sequence[str],
    constants: Sequence[str],
    configs: Sequence[str],
    grid: str | None,
    more: dict[str, Any],
) -> KernelSet:
    """Compile a kernel of a file."""
    from culaunch.triton import compile  # noqa: A004

    function, module = object_of_file(kernel)
    archs = [arch.strip() for text in arches for arch in text.split(",")]
    try:
        with waiting(f"compiling {kernel} for {', '.join(archs)}"):
            return compile(
                function,
                list(signatures),
                arch=archs,
                constants=read_settings(constants),
                configs=[read_settings(split_settings(text)) for text in configs] or None,
                grid=_grid(grid, function, module),
                **more,
            )
    except TypeError as error:
        raise refused(error) from None


def _grid(text: str | None, kernel: Any, module: Any) -> Any:
    """Return the function of the file that a text names, or the text."""
    # A parameter of the kernel is meant before a function of the file that is called the same.
    if text in getattr(kernel, "arg_names", ()):
        return text
    return named_in(module, text)
