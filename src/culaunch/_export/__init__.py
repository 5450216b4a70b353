"""Functions as shared libraries that need neither culaunch nor Python."""

from culaunch._export.shared_library import export

__all__ = ["export"]
