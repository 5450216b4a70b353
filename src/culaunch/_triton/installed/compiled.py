"""What somebody has kept of a launch, and launches again: ``compiled[grid](...)``, natively."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.cuda import DeviceAttribute
from culaunch._base.untraced import untraced
from culaunch._errors import DriverError
from culaunch._launch.driver import current_driver
from culaunch._triton.live.tritons_run import AROUND
from culaunch._triton.upstream.target import has_stand_in, triton_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._triton.report import Record

_ATTRIBUTE = "_culaunch_kept"
# What a launcher of Triton's is given between the grid and the arguments: the stream, the function,
# the packed metadata, the metadata of this launch, and the two hooks around it.
_BEFORE_ARGUMENTS = 6
_OTHER = "what Triton compiled was launched otherwise than it was compiled for, or with hooks"
_NO_SET = "what Triton compiled cannot be kept as a set"


class CompiledLaunches:
    """What ``compiled[grid]`` does while kernels are launched natively.

    Parameters
    ----------
    record_of : callable
        ``record_of(function)`` counts the launches of a JIT function; None where Triton has to
        launch it.
    set_of : callable
        Makes a `KernelSet` of a ``CompiledKernel``, or raises.
    """

    def __init__(
        self, record_of: Callable[[Any], Record | None], set_of: Callable[[Any], Any]
    ) -> None:
        self._record_of = record_of
        self._set_of = set_of
        self._kept: list[weakref.ref[Any]] = []

    def forget(self) -> None:
        """Take away what kernels keep: which are native is asked anew."""
        for reference in self._kept:
            compiled = reference()
            if compiled is not None:
                vars(compiled).pop(_ATTRIBUTE, None)
        self._kept.clear()

    def subscripting(self, original: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Make what stands in the place of ``CompiledKernel.__getitem__``, which is `original`."""
        knobs = triton_module("knobs")

        @functools.wraps(original)
        @untraced
        def subscript(compiled: Any, grid: Any) -> Any:
            kept = self._kept_of(compiled)
            if kept is None:
                return original(compiled, grid)
            if kept.kernels is None:
                kept.record.went_tritons_way(_NO_SET)
                return original(compiled, grid)

            @untraced
            def runner(*args: Any, **kwargs: Any) -> None:
                # Triton passes what it is given, whatever it has compiled for: an argument that the
                # set refuses goes there, before anything was launched. So does a stream, which is
                # the one keyword that there is.
                if not kwargs and len(args) == kept.parameters and not _has_hooks(knobs.runtime):
                    try:
                        kept.kernels[grid[0], grid[1], grid[2]](*args)
                    except DriverError:
                        raise
                    except (LookupError, TypeError, ValueError, OverflowError):
                        pass
                    else:
                        kept.record.native[0] += 1
                        return
                kept.record.went_tritons_way(_OTHER)
                original(compiled, grid)(*args, **kwargs)

            return runner

        return subscript

    def running(self, original: property) -> property:
        """Make what stands in the place of ``CompiledKernel.run``: Triton's launcher, in C.

        It is quick, and stays as it is; but where Triton has no driver, and so no launcher, there
        is one that launches natively.
        """
        subscript = triton_module("compiler.compiler").CompiledKernel.__getitem__

        @untraced
        def run(compiled: Any) -> Any:
            if not has_stand_in() or self._kept_of(compiled) is None:
                return original.__get__(compiled)

            @untraced
            def launch(x: Any, y: Any, z: Any, *others: Any) -> None:
                subscript(compiled, (x, y, z))(*others[_BEFORE_ARGUMENTS:])

            return launch

        return property(run)

    def _kept_of(self, compiled: Any) -> Kept | None:
        found: Kept | None = vars(compiled).get(_ATTRIBUTE)
        return found or self._keep(compiled)

    def _keep(self, compiled: Any) -> Kept | None:
        function = getattr(getattr(compiled, "src", None), "fn", None)
        record = self._record_of(function) if function is not None else None
        if function is None or record is None:
            return None
        kept = Kept(record, _made_set(compiled, self._set_of), len(function.params))
        vars(compiled)[_ATTRIBUTE] = kept
        self._kept.append(weakref.ref(compiled))
        return kept


class Kept(NamedTuple):
    """What a ``CompiledKernel`` keeps for its native launches, until kernels are forgotten.

    Who calls it so wants to save time: what tells whether it is native is asked once.

    Attributes
    ----------
    record : Record
        Counts the launches.
    kernels : KernelSet or None
        None where none can be made, or none could run.
    parameters : int
        How many it takes, constants included.
    """

    record: Record
    kernels: Any
    parameters: int


def _has_hooks(runtime: Any) -> bool:
    """Whether a hook is to be called around launches."""
    for name in AROUND:
        hook = getattr(runtime, name)
        if hook is not None and getattr(hook, "calls", True):
            return True
    return False


def _made_set(compiled: Any, set_of: Callable[[Any], Any]) -> Any:
    """Return the set of what Triton compiled; None where none can be made, or none could run."""
    driver = current_driver()
    most = driver.attribute(
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, driver.current_device()
    )
    # Triton raises OutOfResources, which autotuners pass over.
    if compiled.metadata.shared > most:
        return None
    try:
        return set_of(compiled)
    except Exception:  # noqa: BLE001 - whatever it is, Triton may be able to do it
        return None
