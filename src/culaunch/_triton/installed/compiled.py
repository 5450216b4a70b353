"""What somebody has kept of a launch, and launches again: ``compiled[grid](...)``, natively."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import DeviceAttribute
from culaunch._base.untraced import untraced
from culaunch._errors import DriverError
from culaunch._launch.driver import current_driver
from culaunch._triton.live.tritons_run import has_hooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._triton.report import Record

# Where a CompiledKernel keeps its set, None for none.
_ATTRIBUTE = "_culaunch_set"
_OTHER = "what Triton compiled was launched otherwise than it was compiled for, or with hooks"
_NO_SET = "what Triton compiled cannot be kept as a set"


def launcher_of_compiled(
    original: Callable[[Any, Any], Any],
    record_of: Callable[[Any], Record | None],
    set_of: Callable[[Any], Any],
) -> Callable[[Any, Any], Any]:
    """Make what stands in the place of ``CompiledKernel.__getitem__``.

    Parameters
    ----------
    original : callable
        Triton's own: it does what cannot be done natively.
    record_of : callable
        ``record_of(function)`` counts the launches of a JIT function; None where Triton has to
        launch it.
    set_of : callable
        Makes a `KernelSet` of a ``CompiledKernel``, or raises.
    """

    @functools.wraps(original)
    @untraced
    def subscript(compiled: Any, grid: Any) -> Any:
        function: Any = getattr(getattr(compiled, "src", None), "fn", None)
        record = None if function is None else record_of(function)
        if record is None:
            return original(compiled, grid)
        kernels = _kept_set(compiled, set_of)
        if kernels is None:
            record.went_tritons_way(_NO_SET)
            return original(compiled, grid)

        @untraced
        def runner(*args: Any, **kwargs: Any) -> None:
            # Triton passes what it is given, whatever it has compiled for: an argument that the set
            # refuses goes there, before anything was launched. So does a stream, which is the one
            # keyword that there is.
            if not kwargs and len(args) == len(function.params) and not has_hooks():
                try:
                    kernels[grid[0], grid[1], grid[2]](*args)
                except DriverError:
                    raise
                except (LookupError, TypeError, ValueError, OverflowError):
                    pass
                else:
                    record.native[0] += 1
                    return
            record.went_tritons_way(_OTHER)
            original(compiled, grid)(*args, **kwargs)

        return runner

    return subscript


def _kept_set(compiled: Any, set_of: Callable[[Any], Any]) -> Any:
    """Return the set of what Triton compiled; None where none can be made, or none could run."""
    own = vars(compiled)
    if _ATTRIBUTE not in own:
        try:
            own[_ATTRIBUTE] = set_of(compiled)
        except Exception:  # noqa: BLE001 - whatever it is, Triton may be able to do it
            own[_ATTRIBUTE] = None
    driver = current_driver()
    most = driver.attribute(
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, driver.current_device()
    )
    # Triton raises OutOfResources, which autotuners pass over.
    return own[_ATTRIBUTE] if compiled.metadata.shared <= most else None
