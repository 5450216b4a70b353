"""The C++ of a phase: partial results of reductions that are computed in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.reductions.labels import Reduction

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node

# Their results are bitwise equal when operands are swapped.
_COMMUTATIVE = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")


class Phase:
    """The reductions of one pass, as one structure and one way to combine two of them.

    Attributes
    ----------
    reductions : list of Node
    number : int
    """

    def __init__(self, reductions: list[Node], number: int) -> None:
        self.reductions, self.number = reductions, number
        self.details = [_detail(node) for node in reductions]

    @property
    def definition(self) -> str:
        """The structure, its identity, and the function that combines two of them."""
        fields: list[str] = []
        identity: list[str] = []
        combine: list[str] = []
        for r, detail in enumerate(self.details):
            combiner = detail.combiner
            count = len(combiner.dtypes)
            types = list(map(dt.compute, combiner.dtypes))
            fields += [f"  {kind} c{r}_{m};" for m, kind in enumerate(types)]
            identity += combiner.identity
            combine.append("    {")
            for side, first in (("a", 0), ("b", count)):
                combine += [
                    f"      const {kind} x{first + m} = {side}.c{r}_{m};"
                    for m, kind in enumerate(types)
                ]
            combine += [f"      {kind} y{m};" for m, kind in enumerate(types)]
            combine += [f"      {line}" for line in combiner.body]
            combine += [f"      both.c{r}_{m} = y{m};" for m in range(count)]
            combine.append("    }")
        n = self.number
        return "\n".join(
            [
                f"struct Partial{n} {{",
                *fields,
                "};",
                f"__device__ __forceinline__ Partial{n} identity{n}() {{",
                f"  return Partial{n}{{{', '.join(identity)}}};",
                "}",
                f"struct Combine{n} {{",
                f"  __device__ __forceinline__ Partial{n} operator()(",
                f"      const Partial{n}& a, const Partial{n}& b) const {{",
                f"    Partial{n} both;",
                *combine,
                "    return both;",
                "  }",
                "};",
                "",
            ]
        )

    @property
    def size(self) -> int:
        """Bytes of the structure."""
        offset, widest = 0, 1
        for detail in self.details:
            for dtype in detail.combiner.dtypes:
                size = dt.BY_NAME["float32"].itemsize if dtype.is_half else dtype.itemsize
                align = size
                offset = -(-offset // align) * align + size
                widest = max(widest, align)
        return -(-offset // widest) * widest

    @property
    def is_ordered(self) -> bool:
        """Whether swapped operands may change bits of the result."""
        return not all(one.combiner.name in _COMMUTATIVE for one in self.details)

    @property
    def definitions(self) -> list[str]:
        """C++ definitions that combining needs."""
        return [text for one in self.details for text in one.combiner.definitions]


def _detail(node: Node) -> Reduction:
    assert isinstance(node.detail, Reduction)
    return node.detail
