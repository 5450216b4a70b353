"""The functions of this package for the extension: ``_core.JaxUpcalls`` has the types."""

from culaunch._jax.texts import resolve

__all__ = ["resolve"]
