"""A decorator that runs Python at every call, above a kernel that is launched natively."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.upstream.host_clock import set_benchmark
from culaunch._triton.upstream.native_half import ATTRIBUTE, OwnWay

if TYPE_CHECKING:
    from collections.abc import Callable


def called_layer(layer: Any, make_native: Callable[[Any], Any]) -> Any:
    """Copy a decorator that runs at every call; the copy launches natively.

    Parameters
    ----------
    layer : Autotuner or Heuristics
    make_native : callable
        Makes the native form of the kernel below the decorator.
    """
    kind = type(layer)
    own = {"_make_native": staticmethod(make_native), **vars(_CalledLayer)}
    own = {name: value for name, value in own.items() if name not in ("__dict__", "__weakref__")}
    made: Any = object.__new__(type(kind.__name__, (kind,), own))
    vars(made)["_original"] = layer
    # Otherwise the copy, whose class is patched for installed kernels, would ask for a native half,
    # and recurse.
    vars(made)[ATTRIBUTE] = OwnWay()
    made.take_over()
    return made


class _CalledLayer:
    """The attributes of a copy besides its class: at any time, those of the original."""

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
        """Take over all current attributes of the original."""
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
