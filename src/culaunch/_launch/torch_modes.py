"""What of torch wants to see each operation of a thread: modes, traces, transformations."""

# ruff: noqa: SLF001 - torch tells it in private words alone

from __future__ import annotations

import sys
from pathlib import Path

from culaunch._core import watch_modes

_KEYS = ("Python", "FuncTorchDynamicLayerFrontMode", "Functionalize", "Tracer")


def watch() -> None:
    """Let the extension know when something wants to see operations, where torch tells it."""
    torch = sys.modules["torch"]
    try:
        keys = 0
        for name in _KEYS:
            key = torch._C._parse_dispatch_key(name)
            keys |= torch._C.DispatchKeySet(key).raw_repr()
        library = Path(str(torch.__file__)).parent / "lib" / "libc10.so"
    except Exception:  # noqa: BLE001 - another torch
        return
    watch_modes(str(library), keys)
