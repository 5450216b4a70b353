"""The parts of torch that intercept a thread's operations: modes, traces, transformations."""

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
    """Let the extension detect interception, if this torch shows it."""
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
    """Use torch in the block for culaunch itself, unseen by modes and transformations.

    A mode that counts or records operations must not see those of a first launch. A new tensor must
    be plain.
    """
    with contextlib.ExitStack() as stack:
        for name in ("DisableTorchFunction", "_DisableTorchDispatch", "_DisableFuncTorch"):
            stack.enter_context(getattr(torch._C, name, contextlib.nullcontext)())
        yield
