"""What the extension calls of this package: ``_core.FunctionUpcalls`` has the types."""

from culaunch._function.recorders import record

__all__ = ["record"]
