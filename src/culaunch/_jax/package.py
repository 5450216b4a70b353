"""JAX, where it is needed: nothing here imports it before."""

from __future__ import annotations

import importlib
import re
import threading
from pathlib import Path
from typing import Any

from culaunch._base.optional import optional
from culaunch._core import xla_handler
from culaunch._errors import MissingDependencyError

TARGET = "culaunch_function"
# The handler is one for all functions; the attribute `call` says which.
_MAJOR, _FIRST_MINOR = 0, 1
_OLDEST = "0.5"

_lock = threading.Lock()
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
        version = _interface_version(Path(ffi.include_dir()))
    except (ImportError, AttributeError, OSError):
        version = None
    if version is None or version < (_MAJOR, _FIRST_MINOR) or version[0] != _MAJOR:
        has = "none" if version is None else "{}.{}".format(*version)
        raise MissingDependencyError(
            f"a function in a program of JAX needs XLA's FFI interface {_MAJOR}.{_FIRST_MINOR} or "
            f"a later {_MAJOR}.x, and JAX {jax.__version__} has {has}: python -m pip install "
            f"'jax>={_OLDEST}'",
            name="jax",
        )
    ffi.register_ffi_target(TARGET, xla_handler("cpu", version[1]), platform="cpu")
    ffi.register_ffi_target(TARGET, xla_handler("CUDA", version[1]), platform="CUDA")


def _interface_version(include: Path) -> tuple[int, int] | None:
    """Read the version of the interface from the header that comes with JAX."""
    text = (include / "xla" / "ffi" / "api" / "c_api.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", text))
    return (int(found["MAJOR"]), int(found["MINOR"])) if len(found) == 2 else None
