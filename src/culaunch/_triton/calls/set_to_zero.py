"""Arrays that a saved set zeroes before each launch."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from culaunch._base.values import spell
from culaunch._launch.torch.versions import open_counters

if TYPE_CHECKING:
    from collections.abc import Mapping


def set_to_zero(kernel: str, name: str, values: Mapping[str, Any]) -> None:
    """Set an argument to zero, in the order of the stream on which the kernel is launched.

    Parameters
    ----------
    kernel : str
        For messages.
    name : str
        Of the argument.
    values : mapping
        All arguments of the call by name.

    Raises
    ------
    TypeError
        If the argument has no way to be set to zero, or one on another stream.
    """
    array = values.get(name)
    if (clear := getattr(array, "zero_", None)) is not None:
        clear()
        if type(array).__module__.partition(".")[0] == "torch":
            open_counters()  # native code also counts, and zeroes from the next call on
        return
    # Libraries whose arrays have `fill` use their own current stream. It is the launch's stream if
    # all arrays belong to that library.
    others = [one for one in values.values() if _is_array(one) and type(one) is not type(array)]
    fill = getattr(array, "fill", None)
    if fill is None or not _is_array(array) or others:
        beside = f" beside {_named(others[0])}" if fill is not None and others else ""
        raise TypeError(
            f"argument {name!r} of {kernel}() is set to zero before each launch. It must be an "
            "array with the method zero_(), such as PyTorch's. An array with fill(), such as one "
            "by NumPy, CuPy or culaunch, works if all arrays of the call have its type "
            f"(got {_named(array)}{beside})"
        )
    # CuPy fills arrays on the current device, but launches on theirs.
    device: Any = getattr(array, "device", None)
    if not hasattr(type(device), "__enter__"):
        device = contextlib.nullcontext()
    with device:
        fill(0)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__dlpack__") or hasattr(value, "__cuda_array_interface__")


def _named(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}" if _is_array(value) else spell(value)
