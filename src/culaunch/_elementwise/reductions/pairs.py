"""Groups that can be computed in the pass over the rows of another group."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.schedule import Group, Schedule


def pair_across(schedule: Schedule) -> None:
    """Find the groups that can be computed together with the rows of another group."""
    for group in list(schedule.groups):
        other = next((one for one in schedule.groups if _goes_along(schedule, one, group)), None)
        if other is None or other.across is not None:
            continue
        group.across = other
        # It runs after the rows.
        schedule.groups.remove(other)
        schedule.groups.insert(schedule.groups.index(group) + 1, other)


def _goes_along(schedule: Schedule, other: Group, group: Group) -> bool:
    if other is group or len(other.phases) != 1 or not group.phases or other.published:
        return False
    if other.kept != group.reduced or set(other.reduced) != set(group.kept):
        return False
    (nodes,) = other.phases
    own = {node for phase in group.phases for node in phase}
    if not all(own.issuperset(schedule.needs(node)) for node in nodes):
        return False
    arguments = [arg for node in nodes for arg in node.args]
    results = [result for _, result in other.outputs]
    return not _reads(arguments, "position") and not _reads(results, "position", "input")


def _reads(nodes: list[Node], *ops: str) -> bool:
    """Whether nodes depend on an operation, other than through a reduction."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node.op in ops:
            return True
        if node.op != "part":
            pending += node.args
    return False
