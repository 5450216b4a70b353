"""The same calls without one shortcut: the difference to the row beside is its saving.

A shortcut of culaunch's knows what the stable ABI of Python, or torch, does not promise. It is
tried before it is used; if it fails, the longer way is taken, which is what these rows measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from overhead import ours

if TYPE_CHECKING:
    from collections.abc import Callable

    from overhead.bench import Bench
    from overhead.cases import Case
    from overhead.timing import Burst

NAMES = {
    "numbers": "numbers through Python's C API",
    "places": "torch's exchange function",
    "torch": "attributes of torch tensors",
    "dicts": "global lookups",
    "forms": "arguments bound on every call",
}


def without(shortcut: str, burst: Burst) -> Burst:
    """Return a burst that has a shortcut switched off; one that learns must not have run yet."""
    from culaunch import _core

    def longer(count: int) -> int:
        _core.use_shortcut(shortcut, False)  # type: ignore[arg-type]
        try:
            return burst(count)
        finally:
            _core.use_shortcut(shortcut, True)  # type: ignore[arg-type]

    return longer


def made_without(shortcut: str) -> Callable[[Bench], Callable[[Case], ours.Made]]:
    """Make a launcher with torch tensors that has a shortcut switched off."""

    def factory(bench: Bench) -> Callable[[Case], ours.Made]:
        make = ours.launcher(bench)

        def made(case: Case) -> ours.Made:
            burst, pointers = make(case)
            return without(shortcut, burst), pointers

        return made

    return factory


def name(contender: str, shortcut: str) -> str:
    """Name a contender without a shortcut."""
    return f"{contender}, {NAMES[shortcut]}"
