"""The library format: one file with images for several architectures and a manifest."""

from culaunch._library.library_file import SUFFIX, LibraryFile
from culaunch._library.write import library_bytes, write_library

__all__ = ["SUFFIX", "LibraryFile", "library_bytes", "write_library"]
