"""The compiled forms of a JIT function, for as long as Triton keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._triton.decorators.layers import triton_kinds
from culaunch._triton.reads.guards import Guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from culaunch._core import TritonVariant


class CompiledKernels:
    """The kernels that Triton compiled for a JIT function, and their loaded images.

    The next call compiles again if a program clears Triton's caches
    (``kernel.device_caches.clear()``) or changes the source of a function that is a constant.

    Parameters
    ----------
    function : JITFunction
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        # By the identity of Triton's kernel, which this entry keeps alive.
        self.loaded: dict[tuple[int, str], tuple[Any, TritonVariant]] = {}
        # Triton's place of each kernel: the dict, the key there, and the kernel.
        self._places: dict[int, tuple[dict[Any, Any], Any, Any]] = {}
        self._constants: dict[int, Any] = {}

    def note(self, kernel: Any, values: Iterable[object]) -> None:
        """Record Triton's result for a call, and the values that it was compiled for."""
        for value in values:
            self._constants.update((id(one), one) for one in _functions_in(value))
        place = self._place(kernel)
        if place is not None:
            self._places[id(kernel)] = place

    def variant(self, kernel: Any, driver: str, load: Callable[[], TritonVariant]) -> TritonVariant:
        """Return a kernel's loaded image for the named driver; load it if necessary."""
        found = self.loaded.get((id(kernel), driver))
        if found is None:
            found = self.loaded[id(kernel), driver] = (kernel, load())
        return found[1]

    def forget(self) -> None:
        """Drop kernels that Triton no longer keeps."""
        caches = [entry[0] for entry in list(self._function.device_caches.values())]
        self._places = {
            number: (cache, key, kernel)
            for number, (cache, key, kernel) in self._places.items()
            if cache.get(key) is kernel and any(one is cache for one in caches)
        }
        self.loaded = {key: one for key, one in self.loaded.items() if key[0] in self._places}
        self._constants.clear()

    def guards(self) -> Guards:
        """Return the guards under which Triton would launch the same compiled kernels."""
        caches = self._function.device_caches
        guards = Guards([(caches, device, True, caches[device]) for device in list(caches)])
        # Triton's key of a function constant is the hash of its source. It is None for a changed
        # function.
        guards.entries += [
            (vars(one), "hash", True, one.hash)
            for one in self._constants.values()
            if "hash" in vars(one)
        ]
        # One guard per kernel would be too many for a program with many variants. A cache's names
        # are fast to compare, and change with any of its kernels.
        guards.exact += [(cache, key, True, kernel) for cache, key, kernel in self._places.values()]
        used = {id(cache): cache for cache, _, _ in self._places.values()}
        guards.quick += [(cache, None, True, tuple(cache)) for cache in used.values()]
        return guards

    def _place(self, kernel: Any) -> tuple[dict[Any, Any], Any, Any] | None:
        for caches in list(self._function.device_caches.values()):
            cache = caches[0]
            for key in reversed(list(cache)):  # the newest kernel is the last one
                if cache.get(key) is kernel:
                    return cache, key, kernel
        return None  # compiled in the background, or by another library's hook


def _functions_in(value: object) -> Iterator[Any]:
    """Yield the JIT functions that a constant is or contains."""
    if isinstance(value, triton_kinds().function):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _functions_in(item)
    elif type(value).__name__ == "constexpr":
        yield from _functions_in(getattr(value, "value", None))
