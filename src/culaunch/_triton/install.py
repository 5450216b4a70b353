"""``install``: makes every launch of every Triton kernel in the process native.

Kernels stay Triton's own objects. Only their classes change: subscripting or running a kernel goes
to its native half. The native half is one of the kernel's attributes, and both are freed together.
"""

from __future__ import annotations

import fnmatch
import functools
import sys
import weakref
from typing import TYPE_CHECKING, Any

from culaunch._base.checks import checked_list
from culaunch._base.fork_lock import ForkLock
from culaunch._base.values import spell
from culaunch._launch.devices.driver import current_driver
from culaunch._triton.decorators.layers import layers_of
from culaunch._triton.from_compiled import saved_of_compiled
from culaunch._triton.installed.classes import Classes
from culaunch._triton.installed.compiled import CompiledLaunches
from culaunch._triton.installed.kernel import InstalledKernel
from culaunch._triton.reads.purity import Unknown
from culaunch._triton.report import Records, Report
from culaunch._triton.upstream.native_half import ATTRIBUTE, Refusal
from culaunch._triton.upstream.supported import check_supported
from culaunch._triton.upstream.target import (
    stand_in_where_triton_has_no_driver,
    triton_module,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Self

    from culaunch._triton.report import Record

_lock = ForkLock()
_records = Records()


def install(
    *, include: str | Iterable[str] = ("*",), exclude: str | Iterable[str] = ()
) -> Installation:
    """Make all launches of Triton kernels native, until :func:`culaunch.triton.uninstall`.

    This includes existing kernels and those that any library imports later. They stay Triton's own
    objects. A call that culaunch cannot launch natively goes through Triton, and
    :func:`culaunch.triton.report` names it.

    Parameters
    ----------
    include, exclude : str or iterable of str
        Patterns like those of file names (``"fla.*"``) for the kernel's module and qualified name
        (``"fla.ops.kda.chunk.kernel"``). A kernel is native if it matches a pattern of `include`
        and none of `exclude`. If culaunch is installed already, these patterns replace the
        previous ones.

    Returns
    -------
    Installation
        A context manager. The end of its block restores the state before this call.

    Raises
    ------
    TypeError
        If a pattern is not a str.
    MissingDependencyError
        If Triton is not installed, or lacks something that culaunch reads.

    Examples
    --------
    >>> from culaunch import triton
    >>> with triton.install(exclude="another_library.*"):
    ...     pass  # launches in this block are native
    """
    global _current  # noqa: PLW0603
    patterns = Patterns(_listed("include", include), _listed("exclude", exclude))
    check_supported()
    with _lock:
        before = _current
        made = Installation(patterns, before)
        stand_in_where_triton_has_no_driver()
        # The classes are patched once, even for nested installations. Another installation changes
        # which kernels are native, so all native halves are rebuilt.
        if before is None:
            _classes.patch()
        else:
            _forget_kernels()
        _current = made
        return made


def uninstall() -> None:
    """Restore Triton's classes, even after several calls of :func:`culaunch.triton.install`.

    Examples
    --------
    >>> from culaunch import triton
    >>> installation = triton.install()
    >>> triton.uninstall()
    """
    _restore(None)


def report(*, clear: bool = False) -> Report:
    """Return how often each kernel was launched natively, how often by Triton, and why.

    Parameters
    ----------
    clear : bool, optional
        Reset the counts to zero afterwards.

    Returns
    -------
    Report
        All launches while :func:`culaunch.triton.install` was in force. ``print`` shows a table.

    Examples
    --------
    >>> from culaunch import triton
    >>> with triton.install():
    ...     pass  # run your program
    >>> triton.report(clear=True).triton
    0
    """
    return _records.report(clear=clear)


class Installation:
    """The context manager that :func:`culaunch.triton.install` returns.

    Examples
    --------
    >>> from culaunch import triton
    >>> with triton.install() as installation:
    ...     isinstance(installation, triton.Installation)
    True
    """

    def __init__(self, patterns: Patterns, before: Installation | None) -> None:
        self.patterns = patterns
        self._before = before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _restore(self._before)


class Patterns:
    """Which kernels are launched natively, by their names."""

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        self._include = include
        self._exclude = exclude

    def why_not(self, name: str) -> str | None:
        """Return why a kernel is not native; None if it is."""
        for pattern in self._exclude:
            if fnmatch.fnmatchcase(name, pattern):
                return f"exclude={pattern!r}"
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self._include):
            return f"include={self._include!r} does not match"
        return None


_current: Installation | None = None
# Every kernel that has the attribute, by its identity.
_kernels: dict[int, weakref.ref[Any]] = {}


# ---- a call


def _launcher(kernel: Any, grid: Any) -> Any:
    """Return the native launcher of a kernel; None if Triton must launch it."""
    native = _native_half(kernel)
    if not isinstance(native, InstalledKernel):
        return None
    try:
        return native[grid]
    except (TypeError, ValueError, OverflowError) as error:  # Triton may accept this grid
        return functools.partial(_launch_in_triton, kernel, grid, str(error))


def _launch_in_triton(kernel: Any, grid: Any, reason: str, /, *args: Any, **kwargs: Any) -> Any:
    function = _function_of(kernel)
    if function is kernel:
        _records.of(function).fell_back(reason)
    return _classes.launch_in_triton(kernel, grid, args, kwargs)


def _went(function: Any) -> None:
    """Count a launch through Triton, because the kernel has no native half."""
    if _classes.is_passing(function):
        return  # already counted when it was given up
    native = _native_half(function)
    if native is not None:
        _records.of(function).fell_back(native.reason)


def _record_of(function: Any) -> Record | None:
    """Return the record of a natively launched JIT function; otherwise count the launch."""
    if not isinstance(function, triton_module("runtime.jit").JITFunction):
        return None
    native = _native_half(function)
    if isinstance(native, InstalledKernel):
        return _records.of(function)
    if native is not None:
        _records.of(function).fell_back(native.reason)
    return None


# ---- the native half of a kernel


def _native_half(kernel: Any) -> InstalledKernel | Refusal | None:
    """Return a kernel's native half, or the reason why it has none; None for any other object."""
    # Use `vars`, because a native kernel forwards attributes to the wrapped object. Check `serves`,
    # because `copy.copy` of a kernel copies the attribute.
    found = vars(kernel).get(ATTRIBUTE)
    if found is not None and found.serves(kernel):
        return found  # type: ignore[no-any-return]
    with _lock:
        if _current is None or _function_of(kernel) is None:
            return None
        made: InstalledKernel | Refusal = _make_half(kernel, _current.patterns)
        vars(kernel)[ATTRIBUTE] = made
        key = id(kernel)
        # By identity and weakly, because kernels need not be hashable, and installing must not
        # extend their lives.
        _kernels[key] = weakref.ref(kernel, lambda _: _kernels.pop(key, None))
        return made


def _make_half(kernel: Any, patterns: Patterns) -> InstalledKernel | Refusal:
    function = _function_of(kernel)
    record = _records.of(function)
    reason = patterns.why_not(record.name) or _why_no_driver() or _why_replaced(kernel)
    if reason is not None:
        return Refusal(kernel, reason)
    try:
        return InstalledKernel(kernel, record, _classes)
    except Unknown as unknown:
        # A decorator that cannot be native is counted as a note: the launch below it is native and
        # counted there.
        if kernel is not function:  # the decorator runs in Python, then the function natively
            record.note(str(unknown))
        return Refusal(kernel, str(unknown))
    except Exception as error:  # noqa: BLE001 - whatever it is, Triton may be able to do it
        return Refusal(kernel, f"{type(error).__name__}: {error}")


def _function_of(kernel: Any) -> Any:
    """Return the JIT function below a kernel's decorators; None for any other object."""
    layers = layers_of(kernel)
    return layers[-1] if layers else None


def _why_replaced(kernel: Any) -> str | None:
    """Return the object to call for a kernel, or for the kernel below its decorators."""
    reasons = map(_classes.replaced_before, layers_of(kernel))
    return next((reason for reason in reasons if reason is not None), None)


def _why_no_driver() -> str | None:
    torch = sys.modules.get("torch")
    if getattr(getattr(torch, "version", None), "hip", None) is not None:
        return "this PyTorch is for ROCm"
    try:
        current_driver()
    except Exception as error:  # noqa: BLE001 - then Triton has to do without culaunch
        return f"{type(error).__name__}: {error}"
    return None


# ---- installations


def _restore(before: Installation | None) -> None:
    """Activate an earlier installation, or none."""
    global _current  # noqa: PLW0603
    with _lock:
        # An inner installation that ends after the outer one changes nothing.
        if _current is None or _current is before:
            return
        _current = before
        _forget_kernels()
        if before is None:
            _classes.restore()


def _forget_kernels() -> None:
    _compiled.forget()
    for reference in list(_kernels.values()):
        kernel = reference()
        half = vars(kernel).pop(ATTRIBUTE, None) if kernel is not None else None
        if isinstance(half, InstalledKernel):
            half.retire()
    _kernels.clear()


def _listed(name: str, patterns: str | Iterable[str]) -> tuple[str, ...]:
    one = isinstance(patterns, str)
    listed = (patterns,) if one else checked_list(name, patterns, "patterns of names")
    for pattern in listed:
        if not isinstance(pattern, str):
            raise TypeError(
                f"{name} must contain only str, patterns of kernel names (got {spell(pattern)})"
            )
    return tuple(listed)


_compiled = CompiledLaunches(_record_of, saved_of_compiled)
_classes = Classes(_launcher, _went, _compiled)
