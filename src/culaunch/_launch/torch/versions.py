"""The version counters of tensors, by which autograd detects writes to saved tensors."""

# ruff: noqa: SLF001 - torch tells it in private words alone

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

from culaunch._core import open_versions
from culaunch._launch.arrays.array import array_info
from culaunch._launch.torch.modes import without_modes


@functools.cache
def open_counters() -> None:
    """Let the extension count writes for torch, which is loaded."""
    find_counters(native=True)


def find_counters(*, native: bool) -> None:
    """Find torch's function that counts. If it is missing, the extension calls Python."""
    torch: Any = sys.modules["torch"]
    libraries = (str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"),) if native else ()
    with without_modes(torch):
        tensor = torch.empty(1)
    array_info(tensor)  # the extension finds the tensor in its Python object
    # Tensors of inference mode lack this key, and have no counter.
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView).raw_repr()
    open_versions(libraries, tensor, keys, torch.autograd.graph.increment_version)
