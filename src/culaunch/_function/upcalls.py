"""The functions here that the extension calls: ``_core.FunctionUpcalls`` has the types."""

from culaunch._function.arrays.identity import is_same
from culaunch._function.body.bodies import around_collection
from culaunch._function.tracing.followed import followed_builtins, followed_code
from culaunch._function.tracing.recorders import record

__all__ = ["around_collection", "followed_builtins", "followed_code", "is_same", "record"]
