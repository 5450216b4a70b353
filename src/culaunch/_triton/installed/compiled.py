"""Native launches of a ``CompiledKernel`` that a program keeps: ``compiled[grid](...)``."""

from __future__ import annotations

import functools
import types
import weakref
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import DeviceAttribute
from culaunch._base.untraced import untraced
from culaunch._core import TritonSubscript
from culaunch._launch.devices.driver import current_driver
from culaunch._triton.installed.compiled_kernel import InstalledCompiled
from culaunch._triton.upstream.native_half import ATTRIBUTE, Refusal
from culaunch._triton.upstream.target import has_stand_in, triton_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._triton.report import Record
    from culaunch._triton.saved.set import SavedSet

# The arguments of Triton's launcher between the grid and the kernel's arguments: the stream, the
# function, the packed metadata, the metadata of this launch, and the two hooks around it.
_BEFORE_ARGUMENTS = 6
_NO_SET = "this compiled kernel cannot be kept as a set"


class CompiledLaunches:
    """The behavior of ``compiled[grid]`` while kernels are launched natively.

    Parameters
    ----------
    record_of : callable
        ``record_of(function)`` counts the launches of a JIT function; None if Triton must launch
        it.
    saved_of : callable
        Makes a `SavedSet` from a ``CompiledKernel``, or raises.
    """

    def __init__(
        self, record_of: Callable[[Any], Record | None], saved_of: Callable[[Any], SavedSet]
    ) -> None:
        self._record_of = record_of
        self._saved_of = saved_of
        # All kernels with a native half, by identity and weakly.
        self._kept: dict[int, weakref.ref[Any]] = {}

    def forget(self) -> None:
        """Remove the native halves. The next call decides again which kernels are native."""
        for reference in list(self._kept.values()):
            compiled = reference()
            half = vars(compiled).pop(ATTRIBUTE, None) if compiled is not None else None
            if isinstance(half, InstalledCompiled):
                half.retire()
        self._kept.clear()

    def subscripting(self, original: Callable[[Any, Any], Any]) -> TritonSubscript:
        """Make the replacement of ``CompiledKernel.__getitem__``, which is `original`."""

        @untraced
        def find(compiled: Any, grid: Any) -> Any:
            half = self._half_of(compiled, original)
            if isinstance(half, InstalledCompiled):
                try:
                    # Triton reads three items of a longer grid, and refuses a shorter one in the
                    # call.
                    return half[grid[0], grid[1], grid[2]]
                except (LookupError, TypeError, ValueError, OverflowError):
                    return functools.partial(half.launch_in_triton, grid)
            if half is not None and (record := self._record_of(compiled.src.fn)) is not None:
                record.fell_back(half.reason)
            return original(compiled, grid)

        kind = triton_module("compiler.compiler").CompiledKernel
        return TritonSubscript(ATTRIBUTE, original, find, types.MethodType, (kind,))

    def running(self, original: property, subscript: TritonSubscript) -> property:
        """Make the replacement of ``CompiledKernel.run``, Triton's launcher in C.

        The launcher is fast and stays. If Triton has no driver, it has no launcher either; then
        `subscript` makes a native one.
        """

        @untraced
        def run(compiled: Any) -> Any:
            if not has_stand_in() or self._half_of(compiled, subscript.__wrapped__) is None:
                return original.__get__(compiled)

            @untraced
            def launch(x: Any, y: Any, z: Any, *others: Any) -> None:
                subscript(compiled, (x, y, z))(*others[_BEFORE_ARGUMENTS:])

            return launch

        return property(run)

    def _half_of(
        self, compiled: Any, original: Callable[[Any, Any], Any]
    ) -> InstalledCompiled | Refusal | None:
        """Return its native launcher, or the reason why it has none; None if not native."""
        found: InstalledCompiled | Refusal | None = vars(compiled).get(ATTRIBUTE)
        if found is not None and found.serves(compiled):
            return found
        function = getattr(getattr(compiled, "src", None), "fn", None)
        record = self._record_of(function) if function is not None else None
        if record is None:
            return None
        saved = _made_set(compiled, self._saved_of)
        half: InstalledCompiled | Refusal = Refusal(compiled, _NO_SET)
        if saved is not None:
            half = InstalledCompiled(compiled, saved, record, original)
        vars(compiled)[ATTRIBUTE] = half
        key = id(compiled)
        self._kept[key] = weakref.ref(compiled, lambda _: self._kept.pop(key, None))
        return half


def _made_set(compiled: Any, saved_of: Callable[[Any], SavedSet]) -> SavedSet | None:
    """Return a set of the kernel that Triton compiled; None if it cannot exist or run."""
    driver = current_driver()
    most = driver.attribute(
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, driver.current_device()
    )
    # Triton raises OutOfResources, which autotuners pass over.
    if compiled.metadata.shared > most:
        return None
    try:
        return saved_of(compiled)
    except Exception:  # noqa: BLE001 - whatever it is, Triton may be able to do it
        return None
