"""Triton's autotuner over a native kernel."""

from __future__ import annotations

import copy
import time
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
    # A shallow copy: the cache of what was tuned is the same dict, so that both forms of the kernel
    # know what either has measured.
    made = copy.copy(tuner)
    made.fn = inner
    # Without this the copy, whose class is patched where kernels are installed, would ask for a
    # native half, and come here again.
    vars(made)[ATTRIBUTE] = OwnWay()
    set_benchmark(made)
    return made


def set_benchmark(tuner: Any) -> None:
    """Let an autotuner measure on the driver in use."""
    if current_driver().name != "cuda" and getattr(tuner, "_do_bench", None) is None:
        # Triton's own needs events of an NVIDIA device.
        vars(tuner).pop("do_bench", None)
        tuner._do_bench = _time_once  # noqa: SLF001 - Triton's own place for it


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


def _time_once(call: Callable[[], object], quantiles: Collection[float]) -> list[float]:
    start = time.perf_counter()
    call()
    return [1e3 * (time.perf_counter() - start)] * len(quantiles)
