"""Save functions to libraries, packages and shared libraries; load them without their source."""

from culaunch._export import export
from culaunch._ship import Library, LoadedFunction, load_library, package, save
from culaunch._ship.libraries.preload import preload

__all__ = [
    "Library",
    "LoadedFunction",
    "export",
    "load_library",
    "package",
    "preload",
    "save",
]
