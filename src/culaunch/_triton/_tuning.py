"""Triton's autotuner over a native kernel."""

from __future__ import annotations

import copy
import time
from typing import TYPE_CHECKING, Any

from culaunch._launch._driver import current_driver

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


def native_tuner(tuner: Any, inner: Any) -> Any:
    """Copy an autotuner so that it launches natively; what it has tuned is shared."""
    made = copy.copy(tuner)
    made.fn = inner
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


def _time_once(call: Callable[[], object], quantiles: Collection[float]) -> list[float]:
    start = time.perf_counter()
    call()
    return [1e3 * (time.perf_counter() - start)] * len(quantiles)
