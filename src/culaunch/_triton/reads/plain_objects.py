"""Whether the attributes of an object agree with its type or its memory."""

from __future__ import annotations

import inspect
from typing import Any

_TENSORS = (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))


def has_plain_shape(value: Any) -> bool:
    """Whether its shape certainly matches its memory: a tensor, not an instance of a subclass."""
    return _name(type(value)) in _TENSORS


def has_plain_dtype(value: Any) -> bool:
    """Whether its element type certainly matches its memory."""
    # Subclasses of PyTorch's tensors may differ. Other arrays have only one description.
    return has_plain_shape(value) or _TENSORS[0] not in map(_name, type(value).__mro__)


def has_plain_class(value: Any) -> bool:
    """Whether its type is the class that ``isinstance`` sees."""
    return inspect.getattr_static(type(value), "__class__", None) is vars(object)["__class__"]


def _name(kind: type) -> tuple[str, str]:
    # Compare names, because torch may not be installed.
    return kind.__module__, kind.__qualname__
