"""The parts of torch that intercept each operation of a thread: modes, traces, transformations."""

# ruff: noqa: SLF001 - torch tells it in private words alone

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culaunch._core import watch_modes

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@contextlib.contextmanager
def without_modes(torch: Any) -> Iterator[None]:
    """Use torch inside of it for ourselves: no mode or transformation sees that, or takes part.

    Who counts operations, or records them to make them again, must not find those of a first
    launch; and a tensor that is made is a plain one.
    """
    with contextlib.ExitStack() as stack:
        for name in ("DisableTorchFunction", "_DisableTorchDispatch", "_DisableFuncTorch"):
            stack.enter_context(getattr(torch._C, name, contextlib.nullcontext)())
        yield
