"""JAX, where it is needed: nothing here imports it before."""

from __future__ import annotations

import atexit
import importlib
import os
import re
from pathlib import Path
from typing import Any

from culaunch._base.fork_lock import ForkLock
from culaunch._base.optional import optional
from culaunch._core import end_xla_calls, xla_handler
from culaunch._errors import MissingDependencyError

TARGET = "culaunch_function"
# The handler is one for all functions; the attribute `call` says which.
_MAJOR = 0
_OLDEST = "0.6"

_lock = ForkLock()
_is_registered = False


def jax_package() -> Any:
    """Return the module ``jax``, whose XLA knows how functions are called.

    Raises
    ------
    MissingDependencyError
        If it is not installed, or too old.
    """
    global _is_registered  # noqa: PLW0603
    jax = optional("jax", "a function in a program of JAX", "jax")
    if not _is_registered:
        with _lock:
            if not _is_registered:
                _register(jax)
                _is_registered = True
    return jax


def _register(jax: Any) -> None:
    try:
        # By name: jax is not installed where everything else is checked.
        ffi: Any = importlib.import_module("jax.ffi")
        minor = _interface_minor(Path(ffi.include_dir()))
    except (ImportError, AttributeError, OSError):
        minor = None
    if minor is None:
        raise MissingDependencyError(
            f"a function in a program of JAX needs JAX {_OLDEST} or newer, and version {_MAJOR}.x "
            f"of its interface for custom calls (this is JAX {jax.__version__}): "
            f"python -m pip install 'jax>={_OLDEST}'",
            name="jax",
        )
    # JAX does not wait for results that nobody has read. The calls of a forked process do not
    # belong to its child, which has none of the threads.
    process = os.getpid()
    atexit.register(lambda: end_xla_calls() if os.getpid() == process else None)
    ffi.register_ffi_target(TARGET, xla_handler("cpu", minor), platform="cpu")
    ffi.register_ffi_target(TARGET, xla_handler("CUDA", minor), platform="CUDA")


def _interface_minor(include: Path) -> int | None:
    """Read the version of the interface from the header that comes with JAX; None: another one."""
    text = (include / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", text))
    # XLA passes the device of a call in JAX 0.6 and newer; this version is the one before.
    is_known = found.get("MAJOR") == str(_MAJOR) and "XLA_FFI_DeviceOrdinal_Get" in text
    return int(found["MINOR"]) if is_known and "MINOR" in found else None
