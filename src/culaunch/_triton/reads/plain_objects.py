"""Whether what an object says of itself is what its type, or its memory, has."""

from __future__ import annotations

import inspect
from typing import Any

_TENSORS = (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))


def has_plain_shape(value: Any) -> bool:
    """Whether what it says of its shape is what its memory has: a tensor, no subclass's."""
    return _name(type(value)) in _TENSORS


def has_plain_dtype(value: Any) -> bool:
    """Whether what it says of its element type is what its memory has."""
    # Nothing is known of subclasses of PyTorch's tensors; other arrays have only one description.
    return has_plain_shape(value) or _TENSORS[0] not in map(_name, type(value).__mro__)


def has_plain_class(value: Any) -> bool:
    """Whether its class, to ``isinstance``, is its type."""
    return inspect.getattr_static(type(value), "__class__", None) is vars(object)["__class__"]


def _name(kind: type) -> tuple[str, str]:
    # By name, as torch need not be installed.
    return kind.__module__, kind.__qualname__
