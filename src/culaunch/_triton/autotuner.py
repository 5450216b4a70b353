"""Triton's autotuner over a native kernel."""

from __future__ import annotations

import copy
import time
import weakref
from typing import TYPE_CHECKING, Any

from culaunch._launch.driver import current_driver

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


def native_tuner(tuner: Any, inner: Any) -> Any:
    """Copy an autotuner so that it launches natively; what it has tuned is shared."""
    made = copy.copy(tuner)
    made.fn = inner
    vars(made)[ATTRIBUTE] = OwnWay()
    if current_driver().name != "cuda" and getattr(made, "_do_bench", None) is None:
        # Triton's own needs events of an NVIDIA device.
        made.__dict__.pop("do_bench", None)
        made._do_bench = _time_once  # noqa: SLF001
    return made


def split_config(config: Any, parameters: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split what a configuration sets into arguments of the kernel and compile options."""
    everything = config.all_kwargs()
    constants = {name: value for name, value in everything.items() if name in parameters}
    options = {name: value for name, value in everything.items() if name not in parameters}
    return constants, options


class TunedCache(dict[Any, Any]):
    """An autotuner's choices by key, which makes native kernels forget one that is taken back."""

    def __init__(self, choices: dict[Any, Any]) -> None:
        super().__init__(choices)
        self._kernels: weakref.WeakSet[Any] = weakref.WeakSet()

    @classmethod
    def of(cls, tuner: Any, kernel: Any) -> Any:
        """Return the cache of an autotuner, which from now on tells a kernel."""
        if type(tuner.cache) is dict:
            tuner.cache = cls(tuner.cache)
        if isinstance(tuner.cache, cls):
            tuner.cache._kernels.add(kernel)  # noqa: SLF001
        return tuner.cache

    def _changed(self) -> None:
        for kernel in list(self._kernels):
            kernel._clear()  # noqa: SLF001

    def __setitem__(self, key: Any, config: Any) -> None:
        is_new = key not in self
        super().__setitem__(key, config)
        if not is_new:
            self._changed()

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._changed()

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def clear(self) -> None:
        """Forget every choice."""
        super().clear()
        self._changed()

    def pop(self, *args: Any) -> Any:
        """Take a choice out."""
        try:
            return super().pop(*args)
        finally:
            self._changed()

    def popitem(self) -> tuple[Any, Any]:
        """Take out the choice that was made last."""
        try:
            return super().popitem()
        finally:
            self._changed()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Choose for some keys."""
        super().update(*args, **kwargs)
        self._changed()

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _time_once(call: Callable[[], object], quantiles: Collection[float]) -> list[float]:
    start = time.perf_counter()
    call()
    return [1e3 * (time.perf_counter() - start)] * len(quantiles)
