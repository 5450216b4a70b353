"""The functions here that the extension calls: ``_core.JaxUpcalls`` has the types."""

from culaunch._jax.texts import resolve

__all__ = ["resolve"]
