"""Precompiled headers for NVRTC.

Three things go wrong when this is left to NVRTC: its heap is too small for CUB, so that nothing is
written; two writers at once can crash it; and it takes a precompiled header for an in-memory header
whose contents have changed. So the heap is raised, one thread compiles at a time, each process has
a directory of its own, and in it each set of header contents has one too.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import shutil
import tempfile
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# CUB's block algorithms need 301 MiB; the memory is only taken as it is used.
_HEAP_BYTES = 512 << 20

_lock = threading.Lock()
_directory: str | None = None
_owner = 0


@contextlib.contextmanager
def pch_session(api: Any, identity: Sequence[str]) -> Iterator[list[str]]:
    """Give the options for one compile, and keep every other one with ``pch=True`` out meanwhile.

    Parameters
    ----------
    api : module
        ``cuda.bindings.nvrtc``.
    identity : sequence of str
        All that a precompiled header depends on.
    """
    with _lock:
        if int(api.nvrtcGetPCHHeapSize()[1]) < _HEAP_BYTES:
            api.nvrtcSetPCHHeapSize(_HEAP_BYTES)
        name = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:32]
        directory = os.path.join(_process_directory(), name)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        yield ["--pch", f"--pch-dir={directory}"]


def raise_heap(api: Any, program: Any) -> None:
    """Make room for the next time, after a compile that found the heap too small."""
    if not api.nvrtcGetPCHCreateStatus(program)[0].name.endswith("HEAP_EXHAUSTED"):
        return
    status, *needed = api.nvrtcGetPCHHeapSizeRequired(program)
    if int(status) == 0:
        api.nvrtcSetPCHHeapSize(needed[0] + needed[0] // 4)


def _process_directory() -> str:
    """Give this process's directory: a precompiled header holds addresses of the process."""
    global _directory, _owner
    if _directory is None or _owner != os.getpid():
        _directory, _owner = tempfile.mkdtemp(prefix="culaunch-pch-"), os.getpid()
        atexit.register(_remove, _directory, _owner)
    return _directory


def _remove(directory: str, owner: int) -> None:
    # A forked child runs the parent's handlers too; the directory is the parent's.
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
