"""JAX, imported only when it is needed."""

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
# All functions share one handler. The attribute `call` identifies the function.
_MAJOR = 0
_OLDEST = "0.6"

_lock = ForkLock()
_is_registered = False


def jax_package() -> Any:
    """Return the module ``jax``, whose XLA knows how functions are called.

    Raise MissingDependencyError if it is not installed, or too old.
    """
    global _is_registered  # noqa: PLW0603
    jax = optional("jax", "a function in a JAX program", "jax")
    if not _is_registered:
        with _lock:
            if not _is_registered:
                _register(jax)
                _is_registered = True
    return jax


def _register(jax: Any) -> None:
    try:
        # Import by name: jax is not installed where the rest is type-checked.
        ffi: Any = importlib.import_module("jax.ffi")
        minor = _interface_minor(Path(ffi.include_dir()))
    except (ImportError, AttributeError, OSError):
        minor = None
    if minor is None:
        raise MissingDependencyError(
            f"a function in a JAX program needs JAX {_OLDEST} or newer, with version {_MAJOR}.x "
            f"of its interface for custom calls (got JAX {jax.__version__}): python -m pip "
            f"install 'jax>={_OLDEST}'",
            name="jax",
        )
    # JAX does not wait for unread results. A forked child lacks the threads, so its parent's calls
    # do not concern it.
    process = os.getpid()
    atexit.register(lambda: end_xla_calls() if os.getpid() == process else None)
    ffi.register_ffi_target(TARGET, xla_handler("cpu", minor), platform="cpu")
    ffi.register_ffi_target(TARGET, xla_handler("CUDA", minor), platform="CUDA")


def _interface_minor(include: Path) -> int | None:
    """Read the interface's version from JAX's header; None if it is unknown."""
    text = (include / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", text))
    # XLA passes the device of a call from JAX 0.6 on. This version is older.
    is_known = found.get("MAJOR") == str(_MAJOR) and "XLA_FFI_DeviceOrdinal_Get" in text
    return int(found["MINOR"]) if is_known and "MINOR" in found else None
