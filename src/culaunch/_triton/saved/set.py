"""``SavedSet``: the contents of a set that are written to a library or to C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._image import Image
from culaunch._library import Members

if TYPE_CHECKING:
    from collections.abc import Callable

    from culaunch._triton.calls.parameters import TritonParameter
    from culaunch._triton.expressions import Expression
    from culaunch._triton.saved.tuned_table import TunedTable
    from culaunch._triton.saved.variant import SavedVariant


@dataclass(frozen=True)
class SavedHeuristic:
    """The value of ``@triton.heuristics`` for one argument, as an expression."""

    name: str
    """The argument."""
    value: Expression
    is_early: bool = False
    """Whether it is above the autotuner, which may then use it to choose. Otherwise it may read the
    autotuner's choice."""


@dataclass(frozen=True)
class SavedSet:
    """The facts of a :class:`KernelSet`: both launching and writing read them."""

    name: str
    parameters: tuple[TritonParameter, ...]
    variants: tuple[SavedVariant, ...]
    read: Callable[[str], bytes]
    """Returns an image by the name that a variant has for it."""
    table: TunedTable | None = None
    """The tuned configurations by key, if there are any."""
    zeroes: tuple[str, ...] = ()
    """The arguments that are set to zero before each launch."""
    computed: tuple[SavedHeuristic, ...] = ()
    """The arguments that are worked out from others, in that order."""
    grid: tuple[Expression, ...] | None = None
    """One to three numbers."""
    blocks: tuple[str, ...] = ()
    """The tensor descriptors that get the block of the variant before each launch."""

    def image(self, name: str) -> Image:
        """Return an image. A library's image stays in the file."""
        return self.read.image(name) if isinstance(self.read, Members) else Image(self.read(name))

    @property
    def heuristics(self) -> tuple[str, ...]:
        """The constants that every call must pass."""
        computed = {one.name for one in self.computed}
        return tuple(
            one.name for one in self.parameters if one.is_heuristic and one.name not in computed
        )
