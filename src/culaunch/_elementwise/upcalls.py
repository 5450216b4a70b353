"""What the extension calls of this package: ``_core.ElementwiseUpcalls`` has the types."""

from culaunch._elementwise.allocate import allocate, finish

__all__ = ["allocate", "finish"]
