"""``InstalledCompiled``: a kernel that Triton has compiled, with native launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._base.untraced import untraced
from culaunch._core import TritonFallback
from culaunch._triton.live.tritons_run import has_hooks, hook_guards
from culaunch._triton.saved.variant_dispatch import VariantDispatcher
from culaunch._triton.upstream.allocators import users_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from culaunch._core import TritonVariant
    from culaunch._triton.report import Record
    from culaunch._triton.saved.set import SavedSet

_OTHER = "a compiled kernel was launched differently from its compilation, or with hooks"


class InstalledCompiled(VariantDispatcher):
    """The native half of a ``CompiledKernel``, for ``compiled[grid](*args)``.

    Triton passes on any arguments, even if the code was compiled for others. A call that does not
    fit the one variant therefore goes to Triton before any launch.

    Parameters
    ----------
    compiled : CompiledKernel
    saved : SavedSet
        The same as a set of one variant.
    record : Record
        Counts the launches.
    original : callable
        Triton's ``CompiledKernel.__getitem__``.
    """

    _compiled: Any
    _record: Record
    _original: Callable[[Any, Any], Any]
    _is_retired: bool

    def __new__(
        cls, compiled: Any, saved: SavedSet, record: Record, original: Callable[[Any, Any], Any]
    ) -> Self:
        """Make one."""
        self = super().__new__(cls, saved)
        self._compiled = compiled
        self._record = record
        self._original = original
        self._is_retired = False
        self._serve(compiled, record.native, True)
        return self

    def serves(self, compiled: Any) -> bool:
        """Whether it was made for this object, and not for the original of a copy."""
        return self._compiled is compiled

    def retire(self) -> None:
        """Leave all later launches to its class, even through launchers that a program kept."""
        self._is_retired = True
        self._serve(None, self._record.native, True)
        self._watch()

    def __reduce__(self) -> Any:
        """Omit it from copies made through pickle."""
        return type(None), ()

    @untraced
    def launch_in_triton(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Leave a launch to Triton, and count it."""
        self._record.fell_back(_OTHER)
        return self._original(self._compiled, grid)(*args, **kwargs)

    # ---- called by the native half

    def _prepare(self) -> None:
        super()._prepare()
        self._watch()  # hooks may be there before the first launch

    @untraced
    def _guarded(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._is_retired:  # the class has another method by now
            return self._compiled[grid](*args, **kwargs)
        if has_hooks():
            return self.launch_in_triton(grid, *args, **kwargs)
        self._watch()  # other hooks replaced them, and are empty
        return self._call_plain(grid, args, kwargs)

    def _fall_back(
        self,
        grid: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reason: object,  # noqa: ARG002
    ) -> Any:
        return self.launch_in_triton(grid, *args, **kwargs)

    @untraced
    def _miss(self, *asked: Any) -> TritonVariant:
        try:
            return super()._miss(*asked)
        except Exception as error:
            raise TritonFallback(str(error)) from error

    def _allocate(self, which: str, size: int, alignment: int, stream: int, device: int) -> object:
        allocator = users_allocator(which)
        if allocator is not None:
            return allocator(size, alignment, stream)
        return super()._allocate(which, size, alignment, stream, device)

    # ---- helpers

    def _watch(self) -> None:
        guards = hook_guards()
        if self._is_retired:  # as if a hook were always installed
            guards.hooks = [[None]]
        self._set_guards(tuple(guards.entries), tuple(guards.hooks), (), ())
