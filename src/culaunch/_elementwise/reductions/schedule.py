"""Groups of reductions that share a kernel, in the order of the kernels.

Reductions over the same dimensions, with the same dimensions left, share one, whether one depends
on another or not. A kernel reads the results of reductions over other dimensions from memory, where
an earlier kernel wrote them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from culaunch._elementwise.reductions.labels import Label, Reduction, ShapedTrace

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node

_Key = tuple[int, frozenset[Label], frozenset[Label]]


@dataclass(eq=False)
class Group:
    """The computation of one kernel."""

    # The dimensions, outermost first. Without reductions, ``reduced`` is the innermost dimension of
    # the outputs.
    kept: tuple[Label, ...]
    reduced: tuple[Label, ...]
    phases: list[list[Node]] = field(default_factory=list)
    """Reductions: each depends only on earlier phases."""
    outputs: list[tuple[int, Node]] = field(default_factory=list)
    """Results, with their place among the results."""
    published: list[Node] = field(default_factory=list)
    """Reductions that later groups read."""
    is_ordered: bool = False
    """Whether something depends on the position along the reduced dimensions."""
    across: Group | None = None
    """Reductions along the kept dimensions, which can be computed in the same pass."""


class Schedule:
    """The groups of a traced function, in the order in which they run.

    Attributes
    ----------
    groups : list of Group
    """

    def __init__(self, trace: ShapedTrace, results: tuple[Node, ...]) -> None:
        self.trace = trace
        self._needs: dict[Node, tuple[Node, ...]] = {}
        self._keys: dict[Node, _Key] = {}
        self._groups: dict[_Key, Group] = {}
        for result in results:
            for node in self._reductions_below(result):
                self._place(node)
        for index, result in enumerate(results):
            self._place_output(index, result)
        self._join_stages()
        for group in self._groups.values():
            self._order_phases(group)
        self.groups = [self._groups[key] for key in sorted(self._groups, key=lambda key: key[0])]
        self._publish()

    def needs(self, node: Node) -> tuple[Node, ...]:
        """Return the reductions that a node depends on directly."""
        return self._needs[node] if node in self._needs else self._find_needs(node)

    def _find_needs(self, node: Node) -> tuple[Node, ...]:
        pending = [node]
        while pending:
            top = pending[-1]
            # The operands of a reduction come from an earlier phase or kernel.
            inner = () if top.op == "reduce" and top is not node else top.args
            missing = [arg for arg in inner if arg not in self._needs and arg.op != "reduce"]
            if missing:
                pending.extend(missing)
                continue
            found: dict[Node, None] = {}
            for arg in inner:
                found |= dict.fromkeys((arg,) if arg.op == "reduce" else self._needs[arg])
            self._needs[top] = tuple(found)
            pending.pop()
        return self._needs[node]

    def _reductions_below(self, result: Node) -> list[Node]:
        """Return all reductions that a result needs, each after its own dependencies."""
        ordered: dict[Node, None] = {}
        pending = [(result, False)]
        while pending:
            node, is_ready = pending.pop()
            if is_ready:
                ordered[node] = None
                continue
            if node in ordered:
                continue
            if node.op == "reduce":
                pending.append((node, True))
            pending.extend((one, False) for one in self.needs(node))
        return list(ordered)

    def _place(self, node: Node) -> None:
        if node in self._keys:
            return
        detail = node.detail
        assert isinstance(detail, Reduction)
        dims = self.trace.together("reduce", node.args)
        self._check_dims(dims)
        every = tuple(label.root() for label in dims if label is not None)
        gone = {label.root() for label in detail.labels}
        kept = tuple(label for label in every if label not in gone)
        reduced = tuple(label for label in every if label in gone)
        kinds = (frozenset(reduced), frozenset(kept))
        stage = 0
        for need in self.needs(node):
            own = self._keys[need]
            stage = max(stage, own[0] + (own[1:] != kinds))
        key = (stage, *kinds)
        self._keys[node] = key
        if key not in self._groups:
            self._groups[key] = Group(kept, reduced)
        self._groups[key].phases.append([node])

    def _place_output(self, index: int, result: Node) -> None:
        dims = self.trace.of(result)
        self._check_dims(dims)
        labels = tuple(label.root() for label in dims if label is not None)
        needs = self.needs(result) if result.op != "reduce" else (result,)
        stage = 0
        if needs:
            last = max((self._keys[need] for need in needs), key=lambda key: key[0])
            fits = set(labels) in (set(last[1] | last[2]), set(last[2]))
            alone = all(self._keys[need] == last or self._keys[need][0] < last[0] for need in needs)
            if fits and alone:
                self._groups[last].outputs.append((index, result))
                return
            stage = last[0] + 1
        key = (stage, frozenset(labels[-1:]), frozenset(labels[:-1]))
        if key not in self._groups:
            self._groups[key] = Group(labels[:-1], labels[-1:])
        self._groups[key].outputs.append((index, result))

    def _join_stages(self) -> None:
        """Delay a group to a later one over the same dimensions, so arrays are read once."""
        for key in sorted(self._groups, key=lambda key: key[0]):
            group = self._groups[key]
            own = {node for (node,) in group.phases}
            later = [one for one in self._groups if one[1:] == key[1:] and one[0] > key[0]]
            if not own or not later:
                continue
            others = [one for one in self._groups.values() if one is not group]
            if any(own & set(self.needs(node)) for one in others for node in _all_nodes(one)):
                continue
            target = self._groups[min(later, key=lambda one: one[0])]
            target.phases = group.phases + target.phases
            target.outputs = sorted(group.outputs + target.outputs, key=lambda one: one[0])
            del self._groups[key]

    def _order_phases(self, group: Group) -> None:
        nodes = [node for (node,) in group.phases]
        phase: dict[Node, int] = {}
        group.phases = []
        for node in nodes:  # each after its dependencies
            own = [phase[need] + 1 for need in self.needs(node) if need in phase]
            phase[node] = max(own, default=0)
            while len(group.phases) <= phase[node]:
                group.phases.append([])
            group.phases[phase[node]].append(node)

    def _publish(self) -> None:
        owner = {node: group for group in self.groups for one in group.phases for node in one}
        for group in self.groups:
            for node in _all_nodes(group):
                for need in self.needs(node):
                    if owner[need] is not group and need not in owner[need].published:
                        owner[need].published.append(need)

    def published_without(self, group: Group, other: Group) -> list[Node]:
        """Return the reductions that later groups read, except one group's."""
        readers = [one for one in self.groups if one is not group and one is not other]
        needed = {need for one in readers for node in _all_nodes(one) for need in self.needs(node)}
        return [node for node in group.published if node in needed]

    def _check_dims(self, dims: tuple[Label | None, ...]) -> None:
        roots = [label.root() for label in dims if label is not None]
        self.trace.check(
            len(set(roots)) == len(roots),
            lambda: (
                f"{self.trace.name}: a value is combined with itself along a different dimension, "
                "as in x + ew.sum(x, axis=1) for a square matrix: use keepdims=True"
            ),
            ValueError,
        )


def _all_nodes(group: Group) -> list[Node]:
    """Return the results and reductions of a group."""
    return [
        *(result for _, result in group.outputs),
        *(node for phase in group.phases for node in phase),
    ]
