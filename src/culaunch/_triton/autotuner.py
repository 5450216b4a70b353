"""Triton's autotuner over a native kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._launch.driver import current_driver
from culaunch._triton.host_clock import time_once

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

# The attribute of a kernel that has its native half, or says why it has none, where every kernel is
# launched natively.
ATTRIBUTE = "_culaunch_native"


class OwnWay:
    """Stands where the native half would: this object runs Triton's Python."""

    reason = "it decides for a native kernel"

    def serves(self, kernel: Any) -> bool:  # noqa: ARG002
        """Whether it is about a kernel."""
        return True


def called_layer(layer: Any, make_native: Callable[[Any], Any]) -> Any:
    """Copy a decorator that is called at every call, so that it launches natively.

    Parameters
    ----------
    layer : Autotuner or Heuristics
    make_native : callable
        Makes the native form of what is below.
    """
    kind = type(layer)
    own = {"_make_native": staticmethod(make_native), **vars(_CalledLayer)}
    own = {name: value for name, value in own.items() if name not in ("__dict__", "__weakref__")}
    made: Any = object.__new__(type(kind.__name__, (kind,), own))
    vars(made)["_original"] = layer
    # Without this the copy, whose class is patched where kernels are installed, would ask for a
    # native half, and come here again.
    vars(made)[ATTRIBUTE] = OwnWay()
    made.take_over()
    return made


class _CalledLayer:
    """What a copy has beyond its class: all that the original has, at any time."""

    _original: Any
    _make_native: Callable[[Any], Any]

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Decide as the original would, and launch natively."""
        self.take_over()
        return type(self._original).run(self, *args, **kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        vars(self)[name] = value
        setattr(self._original, name, value)

    def take_over(self) -> None:
        """Have all that the original has now."""
        own, original = vars(self), vars(self._original)
        below = own.get("_below")
        inner = own.get("fn")
        own.update(original)
        own[ATTRIBUTE] = OwnWay()
        if below is not original["fn"]:
            own["_below"] = original["fn"]
            inner = self._make_native(original["fn"])
        own["fn"] = inner
        if "configs" in own:
            set_benchmark(self)


def set_benchmark(tuner: Any) -> None:
    """Let an autotuner measure on the driver in use."""
    if current_driver().name != "cuda" and getattr(tuner, "_do_bench", None) is None:
        # Triton's own needs events of an NVIDIA device.
        vars(tuner).pop("do_bench", None)
        vars(tuner)["_do_bench"] = time_once  # Triton's own place for it


def split_config(config: Any, parameters: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split what a configuration sets into arguments of the kernel and compile options."""
    return split_settings(config.all_kwargs(), parameters)


def split_settings(
    settings: dict[str, Any], parameters: Collection[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split what is set by name into arguments of the kernel and compile options."""
    constants = {name: value for name, value in settings.items() if name in parameters}
    options = {name: value for name, value in settings.items() if name not in parameters}
    return constants, options
