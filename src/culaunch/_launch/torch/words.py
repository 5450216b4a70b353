"""The word of a torch tensor that contains its kind, on each device."""

# ruff: noqa: SLF001 - what a tensor is in memory, torch tells in private words alone

from __future__ import annotations

import functools
import operator
from typing import Any

# torch's names of a device's bits: its own, its gradients', and its autocast's.
_HOST, _GPU = "CPU", "CUDA"


def words_of(torch: Any, tensor: Any) -> tuple[int, int]:
    """Return the word of a host tensor, and its value for the same tensor on a GPU.

    No tensor is created on a GPU, because opening a context takes seconds and memory. torch names
    each bit, and the name contains the device's name.
    """
    keys = torch._C._dispatch_keys(tensor)
    names = str(keys).partition("(")[2].rstrip(")").split(", ")

    def word(device: str) -> int:
        parse, one = torch._C._parse_dispatch_key, torch._C.DispatchKeySet
        sets = [one(parse(name.replace(_HOST, device))) for name in names]
        return int(functools.reduce(operator.or_, sets).raw_repr())

    if word(_HOST) != keys.raw_repr():
        raise ValueError(f"the names {names} from torch do not describe the tensor completely")
    return word(_HOST), word(_GPU)
