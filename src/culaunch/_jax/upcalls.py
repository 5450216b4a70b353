"""What the extension calls of this package: ``_core.JaxUpcalls`` has the types."""

from culaunch._jax.texts import resolve

__all__ = ["resolve"]
