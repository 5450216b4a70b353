"""How torch.compile treats culaunch's objects in the regions that it traces.

Dynamo, which traces them, does not know culaunch's types, and must not trace into this package.
Types register here, and ``dynamo.py`` passes them to Dynamo: at once if it is loaded, otherwise
when it is imported. This never imports torch.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from culaunch._base.fork_lock import ForkLock
from culaunch._launch.launches.dynamo import Region, tell

if TYPE_CHECKING:
    import types
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec

_TRACER = "torch._dynamo"
_lock = ForkLock()
_is_watching = False


REGIONS: dict[type, Region] = {}
# Functions of numbers, each with an equivalent in Python that Dynamo may trace.
NUMBERS: dict[Callable[..., Any], Any] = {}


def in_regions(kind: type, way: str, what: str) -> None:
    """Declare how a compiled region treats the objects of a type, but not of its subclasses."""
    REGIONS[kind] = Region(way, what)
    _watch()


def number_in_regions(function: Callable[..., Any], plain: Callable[..., Any]) -> None:
    """Declare how a compiled region computes a function of numbers: one without globals."""
    NUMBERS[function] = plain
    _watch()


def _watch() -> None:
    global _is_watching  # noqa: PLW0603 - one finder, whoever comes first
    with _lock:
        # Insert it first, because another finder would find the module without a report.
        if not _is_watching and _TRACER not in sys.modules:
            sys.meta_path.insert(0, _Finder())
        _is_watching = True
    if _TRACER in sys.modules:
        tell(REGIONS, NUMBERS)


class _Finder:
    """Notices that Dynamo is loaded. Python has no other hook for it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the one module like any import, with a loader that reports it; find no other."""
        if name != _TRACER:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                # The spec is unchanged except for the loader, which reports the import.
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """A loader that reports when its module is loaded, and leaves no trace."""

    def __init__(self, loader: Any, finder: _Finder) -> None:
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> Any:
        """Create the module."""
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        """Run the module, then report it."""
        if module.__spec__ is not None:
            # From here on the module has its own loader: `inspect` finds its source, and it can be
            # reloaded.
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path.remove(self._finder)
        tell(REGIONS, NUMBERS)
