"""``culaunch emulate``: runs a program, which need not know culaunch, on the emulator."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import click

import culaunch as cl
from culaunch._base.driver_choice import VARIABLE

_LIBRARY = Path(cl.__file__).with_name("_emulator") / "libcuda" / "libcuda.so.1"


@click.command(
    "emulate",
    # Options after the program belong to the program.
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--arch", help="The architecture of the device: sm_80 by default.")
@click.option("--options", help="Checks of the emulator, such as check_races,time_limit=10.")
@click.option("--strict", is_flag=True, help="Refuse NumPy arrays and CPU tensors, as a GPU does.")
def command(program: tuple[str, ...], arch: str | None, options: str | None, strict: bool) -> None:
    """Run a program with the emulator as its CUDA driver.

    The program finds the emulator as libcuda.so.1, also in processes that it starts. It may be
    written in any language. PROGRAM is the command to run: culaunch emulate ./program ARGUMENTS
    """
    if not _LIBRARY.exists():
        raise click.ClickException(
            f"this installation has no {_LIBRARY}: it is built for Linux on x86-64 and AArch64"
        )
    if shutil.which(program[0]) is None:
        raise click.ClickException(f"PROGRAM must be a program (got {program[0]!r}, not found)")
    environment = {**os.environ, "CULAUNCH_EMULATE_PYTHON": _this_python()}
    _put_first(environment, "LD_LIBRARY_PATH", str(_LIBRARY.parent))
    # Found in that folder: a path with a space would be two names.
    _put_first(environment, "LD_PRELOAD", "libculaunch_nvrtc.so.1")
    # AddressSanitizer refuses to start after another library, in case that replaces malloc.
    _put_first(environment, "ASAN_OPTIONS", "verify_asan_link_order=0")
    environment[VARIABLE] = "emulator"
    # The table of functions of this process, whose number the program will have.
    environment.pop("CULAUNCH_DRIVER_TABLE", None)
    settings = (("ARCH", arch), ("OPTIONS", options), ("STRICT", "1" if strict else None))
    for name, value in settings:
        if value is not None:
            environment[f"CULAUNCH_EMULATOR_{name}"] = value
    sys.stdout.flush()
    os.execvpe(program[0], program, environment)  # noqa: S606 - the program is the user's


def _put_first(environment: dict[str, str], name: str, word: str) -> None:
    environment[name] = os.pathsep.join(filter(None, (word, environment.get(name))))


def _this_python() -> str:
    """Return where a program finds this Python: libpython, the two prefixes, and sys.path."""
    path = [os.path.abspath(folder) for folder in sys.path if folder]
    return os.pathsep.join([_libpython(), sys.base_prefix, sys.base_exec_prefix, *path])


def _libpython() -> str:
    """Return the file of the shared library of this Python, or nothing if it has none."""
    # A Python whose program contains all of it may have the library as well.
    config = sysconfig.get_config_var
    name = f"libpython{config('py_version_short')}{sys.abiflags}.so"
    for folder in (config("LIBDIR"), config("LIBPL"), os.path.join(sys.base_prefix, "lib")):
        for file in (f"{folder}/{name}.1.0", f"{folder}/{name}"):
            if folder and os.path.exists(file):
                return file
    return ""
