"""Functions as C++ text: everything that a library without Python needs."""

from culaunch._function.export.exported import Exported
from culaunch._function.export.header import library_header
from culaunch._function.export.library import LibrarySource, library_source

__all__ = ["Exported", "LibrarySource", "library_header", "library_source"]
