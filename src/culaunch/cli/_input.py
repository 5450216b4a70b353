"""The inputs of commands: images, libraries, objects of Python files."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import culaunch as cl
from culaunch.cli._output import STANDARD

if TYPE_CHECKING:
    from types import ModuleType

    from culaunch.triton import KernelSet


# Packages that pip calls by the name that they are imported by.
_FRAMEWORKS = ("jax", "numpy", "torch", "triton")


def image_source(name: str) -> str | bytes:
    """Return the source for the API: a path unchanged, or the bytes of standard input for ``-``."""
    return sys.stdin.buffer.read() if name == STANDARD else name


def kernel_of(image: str, name: str | None, signature: str | None) -> cl.Kernel:
    """Load an image, or compile a source, and return the kernel of a name, or the only one."""
    module = cl.load(_compiled(image, name) if image.endswith(".cu") else image_source(image))
    if name is None:
        if len(module) != 1:
            names = "\n  ".join(one.demangled for one in module.kernels)
            raise click.UsageError(
                f"the image has {len(module)} kernels; name one of them:\n  {names}"
            )
        name = module.kernels[0].name
    return module.kernel(name, signature=signature)


def _compiled(path: str, name: str | None) -> cl.Image:
    """Compile a file for the driver in use; an instance of a template is named to the compiler."""
    names = [name] if name is not None and "<" in name else []
    # The emulator's reports name the source line. Line information does not change the code.
    is_emulated = cl.driver.driver_name() == "emulator"
    image = cl.compile(Path(path), names=names, line_info=is_emulated)
    if image.log:
        click.echo(image.log, err=True)
    return image


def dims(option: str, text: str | None) -> tuple[int, ...] | None:
    """Read the sizes of an option, such as 4 or 16,16."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    except ValueError:
        raise click.BadParameter(
            f"must be a number, or up to three, as in 16,16 (got {text!r})",
            param_hint=f"--{option}",
        ) from None


def saved_set(text: str) -> KernelSet:
    """Read a set of Triton kernels from FILE.culib, or FILE.culib:KERNEL."""
    from culaunch.triton import KernelSet

    path, suffix, name = text.rpartition(".culib")
    return KernelSet.load(path + suffix, name.removeprefix(":") or None)


def object_of_file(text: str) -> tuple[Any, ModuleType]:
    """Run FILE.py of FILE.py:NAME, and return the object of that name and the module."""
    path, _, name = text.rpartition(":")
    if not path or not name:
        raise click.UsageError(f"the kernel must be FILE.py:KERNEL (got {text})")
    file = Path(path).resolve()
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise click.UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(file.parent))  # as for a script
    # Under its name before it runs, as an import would: its dataclasses and pickles look there.
    sys.modules[file.stem] = module
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        root = str(error.name).partition(".")[0]
        pip = f": python -m pip install {root}" if root in _FRAMEWORKS else ""
        raise cl.MissingDependencyError(
            f"{path} imports {error.name}, which {sys.executable} does not have{pip}"
        ) from error
    except Exception as error:
        _print_own_frames(error, str(file))
        raise click.exceptions.Exit(1) from error
    found = getattr(module, name, None)
    if found is None:
        raise click.UsageError(f"{path} has no {name}")
    return found, module


def _print_own_frames(error: Exception, file: str) -> None:
    """Print the traceback of a user's file from its first frame on; those before are ours."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != file:
        frame = frame.tb_next
    click.echo("".join(traceback.format_exception(type(error), error, frame)), err=True, nl=False)


def named_in(module: ModuleType, text: str | None) -> Any:
    """Return the function of a module that a text names, or the text."""
    found = getattr(module, text, None) if text is not None and text.isidentifier() else None
    return found if callable(found) else text
