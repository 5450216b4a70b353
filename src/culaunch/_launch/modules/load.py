"""Loads files and bytes as modules."""

from __future__ import annotations

import os

from culaunch._base.values import spell
from culaunch._errors import ImageError
from culaunch._image import Image
from culaunch._launch.modules.module import Module


def load(source: str | os.PathLike[str] | bytes | Image) -> Module:
    """Load an image into the driver in use.

    Parameters
    ----------
    source : str, os.PathLike, bytes or Image
        A path, the bytes of a cubin, a fatbin or PTX, or the result of :func:`culaunch.compile`.

    Returns
    -------
    Module
        Good for every device that the image has code for.

    Raises
    ------
    ImageError
        If it is not an image, or is truncated, malformed or relocatable.
    DriverError
        If the driver refuses it: it is for another architecture, or its PTX does not compile.
    DriverNotFoundError
        If there is no CUDA driver and the emulator is not selected.
    OSError
        If the file is not there or cannot be read.

    Examples
    --------
    >>> module = cl.load(cl.compile(source))
    >>> module["add"][1, 256](y, x, x, 256)
    """
    try:
        image = Image.open(source)
    except (ImageError, OSError) as error:
        if not _is_source(source, is_there=isinstance(error, ImageError)):
            raise
        shown = spell(source) if len(str(source)) < _LONGEST else "source"
        raise ImageError(
            "source must be an image (got CUDA source): compile it first, as in "
            f"culaunch.load(culaunch.compile({shown}))"
        ) from error
    return Module(image)


_LONGEST = 80


def _is_source(given: object, *, is_there: bool) -> bool:
    """Tell whether it is source code, or the name of an existing source file."""
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        return False
    is_file = is_there and given.endswith((".cu", ".cuh", ".cpp", ".cc", ".c", ".h", ".hpp"))
    return is_file or "__global__" in given
