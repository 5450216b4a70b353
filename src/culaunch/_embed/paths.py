"""Where the C++ header and the CMake files are: in the wheel, or in the source tree."""

from __future__ import annotations

import os

from culaunch._errors import InternalError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SOURCE_TREE = os.path.dirname(os.path.dirname(_PACKAGE))


def include_dir() -> str:
    """Return the directory to give to ``-I`` for ``#include <culaunch/culaunch.h>``.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> Path(cl.cpp.include_dir(), "culaunch/culaunch.h").exists()
    True
    """
    return _find("include", os.path.join("culaunch", "culaunch.h"))


def cmake_dir() -> str:
    """Return the directory with ``culaunchConfig.cmake``, for ``-Dculaunch_DIR=``.

    Returns
    -------
    str
        An absolute path.

    Examples
    --------
    >>> Path(cl.cpp.cmake_dir(), "culaunchConfig.cmake").exists()
    True
    """
    return _find("cmake", "culaunchConfig.cmake")


def _find(directory: str, file: str) -> str:
    for root in (_PACKAGE, _SOURCE_TREE):
        path = os.path.join(root, directory)
        if os.path.isfile(os.path.join(path, file)):
            return path
    raise InternalError(
        f"{directory}/{file} is neither in the package ({_PACKAGE}) nor in a source tree around "
        "it: the installation is incomplete, so reinstall culaunch"
    )
