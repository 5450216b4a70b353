"""Whether a value cancels out of the results, as the maximum does in a softmax.

Say that the value grew by d. Then another value may grow by some multiple of d, be multiplied by
e to the power of some multiple, or stay as it is. If the results stay as they are, whatever d is,
their gradient with respect to the value is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._elementwise.reductions.labels import Reduction

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import ShapedTrace


@dataclass(frozen=True)
class _Change:
    """How a value changes: it grows by ``added`` · d, or is multiplied by e^(``power`` · d)."""

    added: float = 0.0
    power: float = 0.0

    @property
    def is_none(self) -> bool:
        return not self.added and not self.power


_SAME = _Change()


def moves_nothing(trace: ShapedTrace, value: Node, results: tuple[Node, ...]) -> bool:
    """Tell whether no result depends on a value, in exact arithmetic."""
    changes: dict[Node, _Change | None] = {value: _Change(added=1.0)}
    pending = list(results)
    # Iterative, because a chain may be longer than Python's stack.
    while pending:
        node = pending[-1]
        missing = [] if node in changes else [arg for arg in node.args if arg not in changes]
        if missing:
            pending += missing
            continue
        if node not in changes:
            changes[node] = _change(trace, value, node, [changes[arg] for arg in node.args])
        pending.pop()
    return all(changes[result] == _SAME for result in results)


def _change(
    trace: ShapedTrace, value: Node, node: Node, args: list[_Change | None]
) -> _Change | None:
    """Return how a node changes; None for any other change."""
    known = [one for one in args if one is not None]
    if len(known) < len(args):
        return None
    if all(one.is_none for one in known):
        return _SAME
    op = node.op
    if op in ("cast", "squeeze"):
        # A cast to integers rounds, so later values may jump.
        return known[0] if node.dtype.kind == "f" else None
    if op == "part":
        return known[0]
    if op == "reduce":
        return _reduced(trace, value, node, known)
    if op in ("add", "subtract"):
        a, b = known
        if a.power or b.power:
            # a·k + b·k is (a + b)·k.
            return a if a == b else None
        return _Change(added=a.added + b.added if op == "add" else a.added - b.added)
    if op in ("multiply", "divide"):
        a, b = known
        if a.added or b.added:
            return None
        return _Change(power=a.power + b.power if op == "multiply" else a.power - b.power)
    if op == "exp":
        return _Change(power=known[0].added) if not known[0].power else None
    if op == "log":
        return _Change(added=known[0].power) if not known[0].added else None
    if op == "negative":
        return _Change(-known[0].added, known[0].power)
    return None


def _reduced(trace: ShapedTrace, value: Node, node: Node, args: list[_Change]) -> _Change | None:
    detail = node.detail
    assert isinstance(detail, Reduction)
    # d differs along the dimensions of the value.
    if any(label.root() in trace.labels(value) for label in detail.labels):
        return None
    name = detail.combiner.name
    if name == "sum" and not args[0].added:
        return args[0]
    return args[0] if name in ("max", "min") else None
