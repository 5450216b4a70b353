"""The word of a tensor of torch that tells what kind of tensor it is, on each device."""

# ruff: noqa: SLF001 - what a tensor is in memory, torch tells in private words alone

from __future__ import annotations

import functools
import operator
from typing import Any

# As torch names the bits of a device: its own, those of its gradients and of its autocast.
_HOST, _GPU = "CPU", "CUDA"


def words_of(torch: Any, tensor: Any) -> tuple[int, int]:
    """Return the word of a host tensor, and its value for the same tensor on a GPU.

    No tensor is created on a GPU: that would open a context, which takes seconds and memory. torch
    has a name for each bit, which contains the device's name.
    """
    keys = torch._C._dispatch_keys(tensor)
    names = str(keys).partition("(")[2].rstrip(")").split(", ")

    def word(device: str) -> int:
        parse, one = torch._C._parse_dispatch_key, torch._C.DispatchKeySet
        sets = [one(parse(name.replace(_HOST, device))) for name in names]
        return int(functools.reduce(operator.or_, sets).raw_repr())

    if word(_HOST) != keys.raw_repr():
        raise ValueError(f"torch's names {names} are not all that it knows of a tensor")
    return word(_HOST), word(_GPU)
