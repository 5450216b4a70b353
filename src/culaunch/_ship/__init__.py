"""Functions in libraries: saved with their images, loaded without their source, packaged."""

from culaunch._ship.library import Library, load_library
from culaunch._ship.loaded import LoadedFunction
from culaunch._ship.package import package
from culaunch._ship.save import save

__all__ = ["Library", "LoadedFunction", "load_library", "package", "save"]
