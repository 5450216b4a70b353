"""The behavior of Triton's classes while kernels are launched natively.

Only two attributes of a class change, and are restored later: the methods behind ``kernel[grid]``
and ``run``. ``run`` of heuristics stays Triton's: Dynamo traces it, and the kernel that it finally
calls launches natively.
"""

from __future__ import annotations

import functools
import gc
import threading
import types
from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._core import TritonSubscript
from culaunch._triton.decorators.layers import triton_kinds
from culaunch._triton.upstream.native_half import ATTRIBUTE
from culaunch._triton.upstream.target import has_stand_in, triton_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from culaunch._triton.installed.compiled import CompiledLaunches


_ABSENT = object()


class Classes:
    """Triton's classes, patched to send a call to the kernel's native half.

    Parameters
    ----------
    launcher : callable
        ``launcher(kernel, grid)`` returns a native launcher, or None.
    went : callable
        Called with each JIT function that Triton launches.
    compiled : CompiledLaunches
        The launches of kernels that Triton has compiled.
    """

    def __init__(
        self,
        launcher: Callable[[Any, Any], Any],
        went: Callable[[Any], None],
        compiled: CompiledLaunches,
    ) -> None:
        self._launcher = launcher
        self._went = went
        self._compiled = compiled
        # Class, name, the class's own attribute (or _ABSENT), and its replacement.
        self._patches: list[tuple[type, str, Any, Any]] = []
        self._runs: dict[type, Any] = {}
        self._own_runs: dict[type, Any] = {}
        # Classes whose `run` other code had already replaced.
        self._replaced: set[type] = set()
        self._threads = _Threads()

    def patch(self) -> None:
        """Patch the classes."""
        jit, autotuner = triton_module("runtime.jit"), triton_module("runtime.autotuner")
        for module, kind in ((jit, jit.JITFunction), (autotuner, autotuner.Autotuner)):
            self._own_runs[kind] = kind.run
            self._runs[kind] = self._running(kind.run, kind is jit.JITFunction)
            self._note_replaced(module, kind)
            self._patch(kind, "run", self._runs[kind])
        base, heuristics = jit.KernelInterface, autotuner.Heuristics
        self._runs[heuristics] = heuristics.run
        self._note_replaced(autotuner, heuristics)
        # A replacement by other code is called, and it calls `run`.
        if _is_of(jit, base.__getitem__):
            original = base.__getitem__
            self._patch(base, "__getitem__", self._subscripting(original))
            self._patch(heuristics, "__getitem__", self._traceable(original))
        module = triton_module("compiler.compiler")
        original = getattr(module.CompiledKernel, "__getitem__", None)
        if original is not None and _is_of(module, original):
            subscript = self._compiled.subscripting(original)
            self._patch(module.CompiledKernel, "__getitem__", subscript)
            run = vars(module.CompiledKernel).get("run")
            if has_stand_in() and isinstance(run, property):  # not before Triton 3.5
                self._patch(module.CompiledKernel, "run", self._compiled.running(run, subscript))

    def restore(self) -> None:
        """Restore the classes."""
        for kind, name, original, made in self._patches:
            # Later replacements call ours, which then calls Triton's.
            if vars(kind).get(name) is not made:
                continue
            if original is _ABSENT:
                delattr(kind, name)
            else:
                setattr(kind, name, original)
        self._patches.clear()
        self._runs.clear()
        self._own_runs.clear()
        self._replaced.clear()

    # ---- queries of native halves

    def call(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function that runs a kernel: another ``run`` if one has replaced ours."""
        # If that replacement has called this code, calling it again would recurse forever.
        run = self._run_of(kernel) if self.is_running(kernel) else kernel.run
        return run(*args, grid=grid, warmup=False, **kwargs)

    def launch_in_triton(
        self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Do the same, but send calls that reach our replacement to Triton's own Python."""
        passing = self._threads.passing
        passing.append(kernel)
        try:
            return self.call(kernel, grid, args, kwargs)
        finally:
            passing.pop()

    def own_run(self, function: Any) -> Callable[..., Any]:
        """Return Triton's own ``run`` of a JIT function, even if other code has replaced it."""
        for kind in type(function).__mro__:
            if kind in self._own_runs:
                return self._own_runs[kind].__get__(function)  # type: ignore[no-any-return]
        return function.run  # type: ignore[no-any-return]  # after `uninstall`

    def replaced_before(self, kernel: Any) -> str | None:
        """Return the earlier replacement by other code, or None."""
        for kind in self._replaced:
            if isinstance(kernel, kind):
                return f"other code replaced {kind.__name__}.run before install(): it is called"
        return None

    def is_passing(self, kernel: Any) -> bool:
        """Whether Triton's own Python runs for a kernel, in this thread."""
        return any(one is kernel for one in self._threads.passing)

    def is_running(self, kernel: Any) -> bool:
        """Whether the replacement of ``run`` is active for a kernel in this thread."""
        return any(one is kernel for one in self._threads.running)

    def are_ours(self, kernel: Any) -> bool:
        """Whether our replacement is a kernel's ``run``, and not another one."""
        return all(
            (name in namespace) is present and namespace.get(name) is expected
            for namespace, name, present, expected in self.guards(kernel)
        )

    def guards(self, kernel: Any) -> Iterator[tuple[dict[str, Any], str, bool, object]]:
        """Yield the dict entries that determine this."""
        # An attribute of the object itself would override its class's.
        yield vars(kernel), "run", False, None
        for kind in type(kernel).__mro__:
            namespace = _namespace(kind)
            if kind in self._runs:
                yield namespace, "run", True, self._runs[kind]
                return
            # A subclass of Triton's autotuner, which was analyzed.
            yield namespace, "run", "run" in namespace, namespace.get("run")

    # ---- the replacements of Triton's methods

    def _run_of(self, kernel: Any) -> Callable[..., Any]:
        for kind in type(kernel).__mro__:
            if kind in self._runs:
                return self._runs[kind].__get__(kernel)  # type: ignore[no-any-return]
        return kernel.run  # type: ignore[no-any-return]  # after `uninstall`

    def _note_replaced(self, module: Any, kind: type) -> None:
        if not _is_of(module, vars(kind).get("run")):
            self._replaced.add(kind)

    def _patch(self, kind: Any, name: str, made: Any) -> None:
        self._patches.append((kind, name, vars(kind).get(name, _ABSENT), made))
        setattr(kind, name, made)

    def _subscripting(self, original: Callable[[Any, Any], Any]) -> TritonSubscript:
        @untraced
        def find(kernel: Any, grid: Any) -> Any:
            launcher = None if self.is_passing(kernel) else self._launcher(kernel, grid)
            return original(kernel, grid) if launcher is None else launcher

        return TritonSubscript(ATTRIBUTE, original, find, types.MethodType, tuple(triton_kinds()))

    def _traceable(self, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Make a replacement that Dynamo traces like Triton's own method."""
        subscript = self._subscripting(original)

        @functools.wraps(original)
        def launcher(kernel: Any, grid: Any) -> Any:
            return subscript(kernel, grid)

        launcher._torchdynamo_inline = original  # type: ignore[attr-defined]  # noqa: SLF001 - torch's mark
        return launcher

    def _running(self, original: Callable[..., Any], is_function: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        @untraced
        def run(kernel: Any, /, *args: Any, **kwargs: Any) -> Any:
            grid = kwargs.get("grid")
            # A call without a grid, or with warmup, launches nothing, so it goes to Triton, which
            # also refuses wrong calls. Without patches, other code has kept this function beyond
            # `uninstall`.
            if not self._patches or grid is None or kwargs.get("warmup", True):
                return original(kernel, *args, **kwargs)
            launcher = None if self.is_passing(kernel) else self._launcher(kernel, grid)
            if launcher is None:
                if is_function:
                    self._went(kernel)
                return original(kernel, *args, **kwargs)
            del kwargs["warmup"], kwargs["grid"]
            running = self._threads.running
            # A launcher that is not served returns to `kernel.run`, which is this function. The
            # list of kernels distinguishes this from a call by another replacement.
            running.append(kernel)
            try:
                return launcher(*args, **kwargs)
            finally:
                running.pop()

        return run


class _Threads(threading.local):
    """The kernels that this thread runs, from the outermost call inward."""

    def __init__(self) -> None:
        self.passing: list[Any] = []
        self.running: list[Any] = []


def _is_of(module: Any, function: Any) -> bool:
    """Whether a module defines a function."""
    # Do not compare names, because `functools.wraps` copies them to the replacement.
    return getattr(function, "__globals__", None) is vars(module)


def _namespace(kind: type) -> dict[str, Any]:
    """Return the dict of a class, whose changes are detected; a copy if it is not accessible."""
    # `vars` of a class returns a read-only view, but watching for changes needs the dict itself.
    for found in gc.get_referents(vars(kind)):
        if isinstance(found, dict):
            return found
    return dict(vars(kind))
