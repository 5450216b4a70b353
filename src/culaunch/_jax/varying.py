"""The axes of a mesh along which arrays differ, inside ``jax.shard_map``.

With ``check_vma``, its default, JAX keeps this in the type of every array. An XLA call that is not
JAX's own lacks this information: its results would count as equal on every device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def axes_of(jax: Any, arrays: Iterable[Any]) -> tuple[str, ...]:
    """Return the axes along which any of the arrays differs."""
    return tuple(dict.fromkeys(axis for one in arrays for axis in _axes(jax, one)))


def varying(jax: Any, array: Any, axes: tuple[str, ...]) -> Any:
    """Return an array whose type also differs along some axes.

    JAX's own operations do this if their arguments differ along different axes. The gradient of a
    value that was the same everywhere is then the sum over all devices.
    """
    more = tuple(axis for axis in axes if axis not in _axes(jax, array))
    if not more:
        return array
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(array, more, to="varying")
    return jax.lax.pvary(array, more)


def _axes(jax: Any, array: Any) -> Iterable[str]:
    kind = jax.typeof(array) if hasattr(jax, "typeof") else None
    # It has had several names.
    found = getattr(getattr(kind, "manual_axis_type", None), "varying", None)
    axes: Iterable[str] = getattr(kind, "vma", ()) if found is None else found
    return axes
