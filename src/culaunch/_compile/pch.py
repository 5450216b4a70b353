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

from culaunch._cache.lock import hold_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# CUB's block algorithms need 301 MiB; the memory is only taken as it is used.
_HEAP_BYTES = 512 << 20
_MAX_SETS = 4
_PREFIX = "culaunch-pch-"
_MEMORY = "/dev/shm"  # noqa: S108 - a directory of this process's own is made in it
_PLENTY = 4 << 30

_lock = threading.Lock()
_directory: str | None = None
_owner = 0
_used: list[str] = []


@contextlib.contextmanager
def pch_session(api: Any, identity: Sequence[str]) -> Iterator[list[str]]:
    """Return the options for one compile, and keep every other one with ``pch=True`` out meanwhile.

    Parameters
    ----------
    api : module
        ``cuda.bindings.nvrtc``.
    identity : sequence of str
        All that a precompiled header depends on.
    """
    with _lock:
        try:
            if int(api.nvrtcGetPCHHeapSize()[1]) < _HEAP_BYTES:
                api.nvrtcSetPCHHeapSize(_HEAP_BYTES)
        except (AttributeError, RuntimeError):  # how the bindings say that it has no such function
            raise ValueError("pch=True needs NVRTC 12.8 or later") from None
        # Under the lock until the compile has ended: two writers of one precompiled header can
        # crash NVRTC.
        yield ["--pch", f"--pch-dir={_directory_for(identity)}"]


def raise_heap(api: Any, program: Any) -> None:
    """Make room for the next time, after a compile that found the heap too small."""
    if not api.nvrtcGetPCHCreateStatus(program)[0].name.endswith("HEAP_EXHAUSTED"):
        return
    status, *needed = api.nvrtcGetPCHHeapSizeRequired(program)
    if int(status) == 0:
        api.nvrtcSetPCHHeapSize(needed[0] + needed[0] // 4)


def _directory_for(identity: Sequence[str]) -> str:
    """Return the directory for one set of header contents, and remove those not used of late."""
    name = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:32]
    directory = os.path.join(_process_directory(), name)
    if directory in _used:
        _used.remove(directory)
    _used.append(directory)
    # A set of CUB's headers takes hundreds of megabytes.
    while len(_used) > _MAX_SETS:
        shutil.rmtree(_used.pop(0), ignore_errors=True)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    return directory


def _process_directory() -> str:
    """Return this process's directory: a precompiled header holds addresses of the process."""
    global _directory, _owner
    if _directory is None or _owner != os.getpid():
        _used.clear()
        base = _base()
        _remove_dead(base)
        _directory, _owner = tempfile.mkdtemp(prefix=_PREFIX, dir=base), os.getpid()
        hold_directory(_directory)  # for as long as the process lives
        atexit.register(_remove, _directory, _owner)
    return _directory


def _base() -> str:
    """Return where to keep them: in memory if there is plenty, as they are mapped in every time."""
    if "TMPDIR" not in os.environ:
        with contextlib.suppress(OSError):
            space = os.statvfs(_MEMORY)
            if os.access(_MEMORY, os.W_OK) and space.f_bavail * space.f_frsize > _PLENTY:
                return _MEMORY
    return tempfile.gettempdir()


def _remove_dead(base: str) -> None:
    """Remove what processes left that were killed: nobody holds their locks."""
    with contextlib.suppress(OSError):
        for item in os.scandir(base):
            mine = item.name.startswith(_PREFIX) and item.is_dir(follow_symlinks=False)
            if mine and item.stat(follow_symlinks=False).st_uid == os.geteuid():
                descriptor = hold_directory(item.path)
                if descriptor is not None:
                    shutil.rmtree(item.path, ignore_errors=True)
                    os.close(descriptor)


def _remove(directory: str, owner: int) -> None:
    # A forked child runs the parent's handlers too; the directory is the parent's.
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
        # Workers of multiprocessing end without running theirs.
        _remove_dead(os.path.dirname(directory))
