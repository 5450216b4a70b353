"""``culaunch inspect``: what is in an image, for reading or as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import culaunch as cl
from culaunch.cli._library import SUFFIX, library_lines, library_to_dict
from culaunch.cli._messages import print_error

if TYPE_CHECKING:
    from collections.abc import Iterator

_TITLES = ("registers", "shared", "stack", "barriers", "threads", "cluster")


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-kernels", is_flag=True, help="List the images only, without opening them.")
def command(files: tuple[str, ...], as_json: bool, no_kernels: bool) -> int:
    """Show what is in images and in libraries that hold them.

    FILE is a cubin, a fatbin, PTX, a .culib, or an object or library with CUDA code in it. With
    --json, one FILE gives one object, and several give an array of them. A FILE that cannot be
    read gives one line of error and the exit code 1; the others are shown all the same.
    """
    found: list[dict[str, Any]] = []
    for path in files:
        try:
            if path.endswith(SUFFIX):
                found.append(library_to_dict(path))
                if not as_json:
                    click.echo("\n".join([*[""] * (len(found) > 1), *library_lines(path)]))
                continue
            inspection = cl.inspect(path, kernels=not no_kernels)
        except (cl.CulaunchError, OSError) as error:
            print_error(error)
            continue
        found.append(inspection.to_dict())
        if not as_json:
            _print(inspection, first=len(found) == 1)
    if as_json and len(files) > 1:
        click.echo(json.dumps(found, indent=2))
    elif as_json and found:
        click.echo(json.dumps(found[0], indent=2))
    return 0 if len(found) == len(files) else 1


def _print(inspection: cl.Inspection, *, first: bool) -> None:
    console = Console(highlight=False)
    if not first:
        console.print()
    for part in _report(inspection):
        # A path or a heading is one line, however long; only tables are fitted to the width.
        console.print(part, soft_wrap=isinstance(part, Text))


def _report(inspection: cl.Inspection) -> Iterator[Text | Padding]:
    count = len(inspection.images)
    what = f"{inspection.format}, {count} image{'' if count == 1 else 's'}"
    yield Text.assemble((inspection.path or "", "bold"), f": {what}")
    for image in inspection.images:
        yield Text()
        yield Text.assemble((image.arch, "bold cyan"), f"  {_image_line(image)}")
        if image.kernels:
            yield Padding(_table(image.kernels), (0, 0, 0, 2))


def _table(kernels: tuple[cl.KernelInfo, ...]) -> Table:
    """Return a row for each kernel; columns of which nothing is known are left out."""
    rows = [_cells(kernel) for kernel in kernels]
    shown = [index for index in range(len(_TITLES)) if any(row[index] for row in rows)]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("kernel", overflow="fold")
    for index in shown:
        table.add_column(_TITLES[index], justify="right", no_wrap=True)
    for kernel, row in zip(kernels, rows, strict=True):
        table.add_row(Text(_signature(kernel)), *(row[index] for index in shown))
    return table


def _image_line(image: cl.ImageInfo) -> str:
    facts = [image.format, _human(image.size)]
    if image.compressed:
        facts.append("compressed")
    if image.relocatable:
        facts.append("relocatable")
    if image.toolkit:
        facts.append(f"toolkit {image.toolkit}")
    return ", ".join(facts)


def _signature(kernel: cl.KernelInfo) -> str:
    """Return the C++ spelling; for a name without one, the types or sizes that are known."""
    if kernel.demangled != kernel.name:
        return kernel.demangled
    params = ", ".join(param.type or _bytes(param.size) for param in kernel.params)
    return f"{kernel.name}({params})"


def _bytes(count: int) -> str:
    return f"{count} byte{'' if count == 1 else 's'}"


def _cells(kernel: cl.KernelInfo) -> list[str]:
    threads = ""
    if kernel.required_threads:
        threads = f"= {_dims(kernel.required_threads)}"
    elif kernel.max_threads:
        threads = f"<= {_dims(kernel.max_threads)}"
    cluster = ""
    if kernel.cluster:
        cluster = f"= {_dims(kernel.cluster)}"
    elif kernel.max_cluster_rank:
        cluster = f"<= {kernel.max_cluster_rank}"
    numbers = (kernel.registers, kernel.static_shared, kernel.stack, kernel.barriers)
    return [*("" if number is None else str(number) for number in numbers), threads, cluster]


def _dims(dims: tuple[int, int, int]) -> str:
    """Return ``128`` for (128, 1, 1), and ``16x16`` for (16, 16, 1)."""
    x, y, z = dims
    return f"{x}x{y}x{z}" if z > 1 else f"{x}x{y}" if y > 1 else str(x)


def _human(size: int) -> str:
    if size < 1 << 10:
        return _bytes(size)
    return f"{size / (1 << 10):.1f} KiB" if size < 1 << 20 else f"{size / (1 << 20):.1f} MiB"
