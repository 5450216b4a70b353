"""The handles of all libraries' streams."""

from __future__ import annotations

from typing import Any

from culaunch._base.values import spell
from culaunch._core import current_stream


def stream_handle(stream: object) -> int:
    """Return the handle of a stream: an int, or an object of a framework.

    Parameters
    ----------
    stream : int or object
        A ``CUstream`` as an int, an object with ``__cuda_stream__`` (the CUDA stream protocol),
        or a PyTorch, CuPy or Numba stream.

    Raises
    ------
    TypeError, OverflowError
        If it is not one of these, or not a valid handle.
    """
    # An int is accepted unchanged, because only the driver knows whether it is a stream.
    if isinstance(stream, int) and not isinstance(stream, bool):
        if not 0 <= stream < 1 << 64:
            raise OverflowError(f"stream must be a handle of 64 bits (got {spell(stream)})")
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair = protocol() if callable(protocol) else protocol
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[1], int):
            raise TypeError(
                f"__cuda_stream__ of {type(stream).__qualname__} must return a tuple of 0 and the "
                f"handle (got {spell(pair)})"
            )
        return pair[1]
    # Each library has its own attribute. Libraries with the protocol are handled above.
    for name in ("cuda_stream", "ptr", "handle"):  # PyTorch, CuPy, Numba
        handle: Any = getattr(stream, name, None)
        if hasattr(handle, "value"):  # a ctypes pointer, whose null is None
            handle = handle.value or 0
        if isinstance(handle, int):
            return handle
    raise TypeError(
        "stream must be an int handle, an object with __cuda_stream__, or a PyTorch, CuPy or "
        f"Numba stream (got {spell(stream)})"
    )


def stream_or_current(stream: object, ordinal: int) -> int:
    """Return the handle of a stream; None means this thread's current stream on a device."""
    return current_stream(ordinal) if stream is None else stream_handle(stream)
