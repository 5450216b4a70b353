"""Functions in libraries: saved with their images, loaded without their source, packaged."""

from culaunch._ship.functions.loaded_function import LoadedFunction
from culaunch._ship.libraries.library import Library, load_library
from culaunch._ship.packages.package import package
from culaunch._ship.saving.save import save

__all__ = ["Library", "LoadedFunction", "load_library", "package", "save"]
