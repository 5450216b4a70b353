"""Triton's warnings that a filter turns into errors. They keep their type, and name Triton."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from culaunch._triton.upstream.target import triton_module

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def warnings_named(kernel: str) -> Iterator[None]:
    """Make a warning raised here say that it comes from Triton, and name the kernel."""
    try:
        yield
    except Warning as warning:
        version = triton_module().__version__
        source = f"Triton {version} warns about {kernel}, and a filter makes warnings errors"
        warning.args = (f"{warning} ({source})", *warning.args[1:])
        raise
