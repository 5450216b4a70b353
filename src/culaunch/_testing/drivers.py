"""The driver of a block, and whether there is a GPU."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from culaunch._base.checks import checked_flag, checked_path
from culaunch._base.driver_choice import STRICT, VARIABLE
from culaunch._errors import DriverNotFoundError
from culaunch._launch import set_driver
from culaunch._testing.emulator import reset_emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHOICE = (VARIABLE, STRICT, "CULAUNCH_DRIVER_TABLE")


@contextlib.contextmanager
def use_driver(name: str, *, strict: bool | None = None) -> Iterator[None]:
    """Select a driver for the block, and restore the previous one at its end.

    The end of the block also clears a fault of the emulated device. Load modules inside the block:
    a module belongs to the driver that loaded it.

    Parameters
    ----------
    name : str
        A name for :func:`culaunch.driver.set_driver`.
    strict : bool, optional
        Make the emulator refuse NumPy arrays and CPU tensors, as a GPU does. Kernels then accept
        arrays of :func:`culaunch.empty`, :func:`culaunch.to_device` and
        :func:`culaunch.testing.to_driver`. By default the environment variable
        ``CULAUNCH_EMULATOR_STRICT`` decides. A GPU ignores this argument.

    Yields
    ------
    None
        The driver is in use in the block.

    Examples
    --------
    >>> from culaunch import testing
    >>> with testing.use_driver("emulator"):
    ...     cl.driver.driver_name()
    'emulator'
    """
    if strict is not None:
        checked_flag("strict", strict)
    before = {variable: os.environ.get(variable) for variable in _CHOICE}
    try:
        if strict is not None:
            os.environ[STRICT] = str(int(strict))
        set_driver(name)
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value
        if name == "emulator":
            reset_emulator()


def c_driver(folder: str | os.PathLike[str]) -> str:
    """Build a ``libcuda.so.1`` whose functions call the driver in use.

    Use it to test C code for the driver, such as the output of
    :meth:`culaunch.triton.KernelSet.write_c`. Link the code with it into a shared library, and call
    that library with :mod:`ctypes`: it then runs on the emulated driver. The library has the driver
    functions that culaunch calls, with asynchronous copies only. It calls the driver that is
    in use when the library is first loaded. Other libraries of the process still find the system's
    ``libcuda.so.1``.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder for the library and its link; it is created. Link with ``-Wl,-rpath`` and this
        folder.

    Returns
    -------
    str
        The path of the library.

    Raises
    ------
    CompileError
        If there is no C++ compiler, or it fails.
    MissingDependencyError
        If ``cuda.h`` is missing.

    Examples
    --------
    >>> from culaunch import testing
    >>> Path(testing.c_driver("driver")).name
    'libcuda.so.1'
    """
    from culaunch._inline.c_driver import build_c_driver

    return build_c_driver(checked_path("folder", folder))


def has_gpu() -> bool:
    """Return whether this machine has CUDA's driver and a GPU.

    Returns
    -------
    bool
        False also if the driver cannot be opened.

    Examples
    --------
    >>> from culaunch import testing
    >>> driver = "cuda" if testing.has_gpu() else "emulator"
    """
    from culaunch._launch import device_count

    try:
        with use_driver("cuda"):
            return device_count() > 0
    except DriverNotFoundError:
        return False
