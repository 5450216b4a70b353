"""Precompiled headers for NVRTC.

NVRTC's own handling has three problems. Its heap is too small for CUB, and then nothing is written.
Two writers at once can crash it. And it uses a precompiled header even if an in-memory header has
changed. Therefore culaunch enlarges the heap and compiles in one thread at a time. Each process has
its own directory, with a folder for each set of header contents.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._base.scratch import Scratch, remove_dead
from culaunch._errors import CacheWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# CUB's block algorithms need 301 MiB; the memory is only taken as it is used.
_HEAP_BYTES = 512 << 20
_MAX_SETS = 4
_PREFIX = "culaunch-pch-"
_MEMORY = "/dev/shm"  # noqa: S108 - a directory of this process's own is made in it
_PLENTY = 4 << 30

_lock = ForkLock()
_scratch: Scratch | None = None
_used: list[str] = []
_said: set[str] = set()
_swept = 0


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
            heap = int(api.nvrtcGetPCHHeapSize()[1])
            if heap < _HEAP_BYTES:
                api.nvrtcSetPCHHeapSize(heap := _HEAP_BYTES)
        except (
            AttributeError,
            RuntimeError,
        ):  # the error of the bindings if NVRTC has no such function
            raise ValueError("pch=True needs NVRTC 12.8 or later") from None
        # Under the lock until the compile has ended: two writers of one precompiled header can
        # crash NVRTC.
        directory = _directory_for(identity) if _has_room(heap) else None
        yield [] if directory is None else ["--pch", f"--pch-dir={directory}"]


def remove_left_once() -> None:
    """Remove, once in a process, the files of killed processes, which may take much memory."""
    global _swept  # noqa: PLW0603 - twice does no harm
    if _swept != os.getpid():
        _swept = os.getpid()
        remove_dead(_base(), _PREFIX)
        remove_dead(tempfile.gettempdir())


def raise_heap(api: Any, program: Any) -> None:
    """Make room for the next time, after a compile that found the heap too small."""
    if not api.nvrtcGetPCHCreateStatus(program)[0].name.endswith("HEAP_EXHAUSTED"):
        return
    status, *needed = api.nvrtcGetPCHHeapSizeRequired(program)
    if int(status) == 0:
        api.nvrtcSetPCHHeapSize(needed[0] + needed[0] // 4)


def _has_room(heap: int) -> bool:
    """Tell whether NVRTC has space for its heap; warn once if it does not.

    The heap is a file that is mapped as memory. If it outgrows the disk, SIGBUS ends the process.
    Space is allocated on use, so the written part shows how much the heap already has.
    """
    place = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - NVRTC's choice
    with contextlib.suppress(OSError):
        space = os.statvfs(place)
        left = space.f_bavail * space.f_frsize
        if left < heap - _largest_written():
            _say(
                place,
                f"{place} has {left >> 20} MiB left, and NVRTC may take {heap >> 20} MiB there",
            )
            return False
    return True


def _largest_written() -> int:
    if _scratch is None or not _scratch.is_own:
        return 0
    with contextlib.suppress(OSError):
        found = (os.scandir(directory) for directory in _used)
        return max((item.stat().st_size for items in found for item in items), default=0)
    return 0


def _say(place: str, why: str) -> None:
    if place not in _said:
        _said.add(place)
        warnings.warn(
            "pch=True has no room for precompiled headers, so headers are compiled each time: "
            f"{why} (set TMPDIR to use another directory)",
            CacheWarning,
            stacklevel=2,
        )


def _directory_for(identity: Sequence[str]) -> str | None:
    """Return the directory for one set of header contents, and remove those not used of late."""
    name = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:32]
    try:
        return _set_directory(name)
    except OSError as error:
        _say(_base(), str(error))
        return None


def _set_directory(name: str) -> str:
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
    global _scratch  # noqa: PLW0603 - under the lock
    if _scratch is None or not _scratch.is_own:
        _used.clear()
        _scratch = Scratch(_base(), _PREFIX).remove_at_exit()
    return _scratch.path


def _base() -> str:
    """Return where to keep them: in memory if there is plenty, as they are mapped in every time."""
    if "TMPDIR" not in os.environ:
        with contextlib.suppress(OSError):
            space = os.statvfs(_MEMORY)
            if os.access(_MEMORY, os.W_OK) and space.f_bavail * space.f_frsize > _PLENTY:
                return _MEMORY
    return tempfile.gettempdir()
