"""The functions here that the extension calls: ``_core.FunctionUpcalls`` has the types."""

from culaunch._function.tracing.recorders import record

__all__ = ["record"]
