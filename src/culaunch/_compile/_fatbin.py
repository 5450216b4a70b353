"""Bring what was compiled for several architectures into one image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._compile._arch import arch_number
from culaunch._compile._library import PIP
from culaunch._errors import InternalError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._compile._backend import Compiled


def combine(parts: Sequence[Compiled], identifier: str) -> bytes:
    """Give the bytes of a fatbin that holds every part."""
    api = _nvfatbin()
    # Uncompressed: the driver loads it sooner, and every tool can read it.
    options = ["-64", "-compress=false"]
    handle = api.create(options, len(options))
    try:
        for part in parts:
            number = arch_number(part.arch)
            data, size = part.data, len(part.data)
            if part.kind == "cubin":
                api.add_cubin(handle, data, size, number, identifier)
            elif part.kind == "ptx":
                api.add_ptx(handle, data, size, number, identifier, "")
            else:
                api.add_ltoir(handle, data, size, number, identifier, "")
        buffer = bytearray(api.size(handle))
        api.get(handle, buffer)
    except api.nvFatbinError as error:
        raise InternalError(f"nvFatbin failed: {error}") from error
    finally:
        api.destroy(handle)
    return bytes(buffer)


def _nvfatbin() -> Any:
    try:
        from cuda.bindings import nvfatbin  # type: ignore[import-untyped]

        nvfatbin.version()
    except Exception as error:  # pathfinder raises several kinds of its own
        raise MissingDependencyError(
            f"a fatbin needs nvFatbin, which cannot be loaded ({error}): {PIP}"
        ) from error
    return nvfatbin
