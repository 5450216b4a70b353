"""How a group's arrays lie in memory: dimensions that can be one, and what packs go along.

Sizes and strides are numbers of the call: each decision here is a guard of the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culaunch._elementwise.reductions.labels import Label
    from culaunch._elementwise.reductions.regime import Source
    from culaunch._elementwise.reductions.schedule import Group

LEAST_COLUMNS = 16  # with fewer adjacent rows, most of a warp has no work


def product(sizes: Sequence[Any]) -> Any:
    """Multiply sizes, without a step for sizes of 1."""
    result: Any = 1
    for size in sizes:
        result = size if type(result) is int and result == 1 else result * size
    return result


def stride(source: Source, label: Label) -> Any:
    """Return an array's stride along a dimension; 0 if it has none."""
    roots = [None if one is None else one.root() for one in source.labels]
    if label not in roots:
        return 0
    at = roots.index(label)
    if source.is_own:
        return product([one.size for one in roots[at + 1 :] if one is not None])
    return source.array.strides[at]  # type: ignore[attr-defined]


class Layout:
    """The dimensions of a group.

    Attributes
    ----------
    kind : str
        ``"row"`` or ``"column"``.
    kept, reduced : list of list of Label
        Dimensions that lie as one in every array, outermost first.
    columns : Label or None
        The dimension along which rows lie beside each other.
    vector : int
        How many elements may be loaded together.
    """

    def __init__(
        self, group: Group, sources: list[Source], elements: list[Source], *, is_map: bool
    ) -> None:
        self.sources = sources
        self._elements = elements
        kept, reduced = list(group.kept), list(group.reduced)
        inputs = [one for one in elements if not one.is_output]
        lead = max(inputs or sources, key=lambda one: sum(x is not None for x in one.labels))
        self.kind = "row"
        self.columns: Label | None = None
        self._choose(lead, kept, reduced, can_turn=is_map or not group.is_ordered)
        self.kept, self.reduced = self._merged(kept), self._merged(reduced)
        self._classify()
        self.vector = self._widest()

    def _choose(
        self, lead: Source, kept: list[Label], reduced: list[Label], *, can_turn: bool
    ) -> None:
        """Find the dimension in which the largest array is contiguous."""
        if not reduced or self._is_one(lead, reduced[-1]):
            return
        for label in reversed(kept):
            if self._is_one(lead, label):
                if label.size >= LEAST_COLUMNS:
                    kept.remove(label)
                    self.kind, self.columns = "column", label
                return
        for label in reversed(reduced[:-1]) if can_turn else ():
            if self._is_one(lead, label):
                reduced.remove(label)
                reduced.append(label)
                return

    def _is_one(self, source: Source, label: Label) -> bool:
        own = stride(source, label)
        return bool(own == 1)

    def _merged(self, labels: list[Label]) -> list[list[Label]]:
        merged: list[list[Label]] = []
        for label in labels:
            if merged and all(self._follow(one, merged[-1][-1], label) for one in self.sources):
                merged[-1].append(label)
            else:
                merged.append([label])
        return merged

    def _follow(self, source: Source, outer: Label, inner: Label) -> bool:
        """Whether two dimensions of an array are one in memory."""
        roots = [None if one is None else one.root() for one in source.labels]
        has = outer in roots, inner in roots
        if not all(has):
            return not any(has)
        if source.is_own:
            between = roots[roots.index(outer) + 1 :]
            return next((one for one in between if one is not None), None) is inner
        return bool(stride(source, outer) == stride(source, inner) * inner.size)

    def _classify(self) -> None:
        inner = self.columns if self.kind == "column" else (
            self.reduced[-1][-1] if self.reduced else None
        )  # fmt: skip
        for source in self.sources:
            own = 0 if inner is None else stride(source, inner)
            if type(own) is int:
                source.inner = {0: "z", 1: "u"}.get(own, "s")
            else:
                source.inner = "u" if own == 1 else "s"

    def _widest(self) -> int:
        """Return how many elements each array allows to load together."""
        packed = [one for one in self._elements if one.inner == "u"]
        if not packed or any(one.inner == "s" for one in self._elements):
            return 1
        # The narrowest type decides. A wider one is loaded as several packs of 16 bytes.
        vector = min(8, 16 // min(one.dtype.itemsize for one in packed))
        if self.kind == "column":
            assert self.columns is not None
            extent = self.columns.size
            while vector > 1 and not extent >= 32 * vector:
                vector //= 2
        else:
            extent = self.size(self.reduced[-1])
        if vector == 1 or extent % vector != 0:
            return 1
        return vector if all(self._is_aligned(one, vector) for one in packed) else 1

    def _is_aligned(self, source: Source, vector: int) -> bool:
        if source.is_own:
            return True
        bytes_ = min(16, vector * source.dtype.itemsize)
        if not source.array.is_aligned(bytes_):  # type: ignore[attr-defined]
            return False
        inner = self.columns if self.kind == "column" else self.reduced[-1][-1]
        for dims in (*self.kept, *self.reduced):
            own = stride(source, dims[-1])
            if dims[-1] is inner or (type(own) is int and own == 0):
                continue
            if own % vector != 0:
                return False
        return True

    def size(self, dims: list[Label]) -> Any:
        """Return how many elements a dimension has."""
        return product([label.size for label in dims])
