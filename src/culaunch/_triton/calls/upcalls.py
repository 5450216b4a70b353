"""The functions of this package for the extension: ``_core.TritonUpcalls`` has the types."""

from culaunch._triton.calls.messages import raise_argument, raise_binding
from culaunch._triton.calls.object_kinds import (
    classify,
    constant,
    describe_constant,
    memory_of,
    read_tensor,
)

__all__ = [
    "classify",
    "constant",
    "describe_constant",
    "memory_of",
    "raise_argument",
    "raise_binding",
    "read_tensor",
]
