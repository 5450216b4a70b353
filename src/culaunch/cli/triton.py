"""``culaunch triton``: a Triton kernel becomes a library, or C, with no GPU."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import click

from culaunch.cli._output import output_path


@click.command("triton")
@click.argument("kernel", metavar="FILE.py:KERNEL")
@click.option(
    "--signature",
    "signatures",
    required=True,
    multiple=True,
    help='Types of the arguments, such as "*fp32:16, *fp32:16, i32"; may be given again.',
)
@click.option(
    "--arch",
    "arches",
    required=True,
    multiple=True,
    help="sm_80, sm_90a, ...; compute_80 keeps PTX alone. May be given again, or with commas.",
)
@click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="NAME=VALUE",
    help="The value of a constant of the kernel.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Constants and options of one more configuration.",
)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="A compile option of Triton."
)
@click.option("--num-warps", type=int, help="Warps of a block; Triton's default is 4.")
@click.option("--num-stages", type=int, help="Stages of software pipelining.")
@click.option("--num-ctas", type=int, help="Blocks of a cluster.")
@click.option("--keep-ptx", is_flag=True, help="Keep the PTX beside each cubin.")
@click.option("-o", "--output", type=click.Path(), metavar="FILE.culib", help="Write a library.")
@click.option(
    "--c-output", type=click.Path(), metavar="FILE.c", help="Write FILE.c and FILE.h for C and C++."
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
    keep_ptx: bool,
    output: str | None,
    c_output: str | None,
) -> None:
    """Compile the Triton kernel KERNEL of FILE.py ahead of time. No GPU is needed.

    FILE.py is run, as an import would.
    """
    if output is None and c_output is None:
        raise click.UsageError("name an output: -o FILE.culib, or --c-output FILE.c")
    from culaunch.triton import compile  # noqa: A004

    given = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
    kernels = compile(
        _load(kernel),
        list(signatures),
        arch=[name.strip() for text in arches for name in text.split(",")],
        constants=dict(map(_setting, constants)),
        configs=[_settings(text) for text in configs] or None,
        keep_ptx=keep_ptx,
        **{name: value for name, value in given.items() if value is not None},
        **dict(map(_setting, options)),
    )
    if output is not None:
        with output_path(output, ".culib") as path:
            kernels.save(path)
    written = [output] if output is not None else []
    if c_output is not None:
        written += [str(path) for path in kernels.write_c(c_output)]
    for variant in kernels.variants:
        click.echo(f"{kernels.name}  {variant}", err=True)
    click.echo(f"wrote {', '.join(written)}", err=True)


def _load(text: str) -> Any:
    """Run a file and give the kernel that it defines."""
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise click.UsageError(f"the kernel is named as FILE.py:KERNEL (got {text})")
    file = Path(path).resolve()
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise click.UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))  # as for a script
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if found is None:
        raise click.UsageError(f"{path} has no {name}")
    return found


def _settings(text: str) -> dict[str, Any]:
    return dict(_setting(item) for item in text.split(","))


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise click.UsageError(f"a setting is NAME=VALUE (got {text!r})")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()
