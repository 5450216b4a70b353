"""The library format: one file with images for several architectures and a manifest."""

from culaunch._library.library_file import SUFFIX, LibraryFile
from culaunch._library.members import Members
from culaunch._library.write import library_bytes, write_library

__all__ = ["SUFFIX", "LibraryFile", "Members", "library_bytes", "write_library"]
