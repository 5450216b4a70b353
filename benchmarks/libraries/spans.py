"""Breakdown of the time of first calls: each moment belongs to the innermost open span."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REST = "PyTorch, Liger, and waiting for the device"
COLLECTOR = "Python's garbage collector"
# The group of each function. Under Triton, loading and running its launchers is the rest.
_SPANS = {
    ("triton.runtime.autotuner", "Autotuner._bench"): "configurations measured by the autotuner",
    ("triton.runtime.jit", "JITFunction._do_compile"): "Triton's compiler, or its cache on disk",
    ("culaunch._triton.native_kernel", "compile_kernel"): "Triton's keys of the arguments",
    ("culaunch._triton.variants.load_variant", "load_image"): "the driver: images loaded",
    ("culaunch._triton.native_kernel", "NativeKernel._miss"): "culaunch",
    ("culaunch._triton.live.watching_dispatch", "WatchingDispatcher._guarded"): "culaunch",
    ("culaunch._triton.installed.kernel", "InstalledKernel._tune"): "culaunch",
    ("culaunch._triton.install", "_native_half"): "culaunch",
}


class Spans:
    """The seconds of each span, without those of spans inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._threads = threading.local()  # autograd calls from a thread of its own

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Measure the block, with every function that is known to be part of something."""
        patched = []
        for (module, path), what in _SPANS.items():
            holder: Any = importlib.import_module(module)
            *inner, name = path.split(".")
            for one in inner:
                holder = getattr(holder, one)
            patched.append((holder, name, vars(holder)[name]))
            setattr(holder, name, self.of(what, vars(holder)[name]))
        gc.callbacks.append(self._collect)
        start = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - start
            gc.callbacks.remove(self._collect)
            self.seconds[REST] = took - sum(self.seconds.values())
            for holder, name, original in patched:
                setattr(holder, name, original)

    def of(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that takes the time of a span."""

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            self._open()
            try:
                return function(*args, **kwargs)
            finally:
                self._close(what)

        return measured

    def _collect(self, phase: str, _: object) -> None:
        if phase == "start":
            self._open()
        elif len(self._stack) > 1:
            self._close(COLLECTOR)

    def _open(self) -> None:
        self._stack.append((time.perf_counter(), 0.0))

    def _close(self, what: str) -> None:
        start, inside = self._stack.pop()
        took = time.perf_counter() - start
        begun, others = self._stack[-1]
        self._stack[-1] = (begun, others + took)
        self.seconds[what] = self.seconds.get(what, 0.0) + took - inside

    @property
    def _stack(self) -> list[tuple[float, float]]:
        """When each open span of this thread began, and the time of the spans inside it."""
        found: list[tuple[float, float]] = vars(self._threads).setdefault("stack", [(0.0, 0.0)])
        return found
