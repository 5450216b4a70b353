"""Results for which a caller may pass arrays, because every path allocates and returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._function.programs import opcodes as oc
from culaunch._function.programs.effects import Allocate, Return, View

if TYPE_CHECKING:
    from culaunch._function.programs.program import Leaf, Node, Tree


def outputs_of(tree: Tree) -> int | None:
    """Return how many arrays every path allocates and returns, if it returns nothing else."""
    counts = set()
    for node in tree.nodes():
        if node.leaf is None or is_refusal(node):
            continue
        counts.add(_outputs(node.leaf))
    return counts.pop() if len(counts) == 1 else None


def output_index(leaf: Leaf) -> dict[int, int]:
    """Return the index of each array among the results, if all of them are new arrays."""
    if not _outputs(leaf):
        return {}
    return {array: index for index, array in enumerate(_returned_arrays(leaf))}


def _outputs(leaf: Leaf) -> int | None:
    arrays = _returned_arrays(leaf)
    new = {effect.array for effect in leaf.effects if isinstance(effect, Allocate)}
    # New arrays that are each returned once, and never viewed in another shape. Only then can the
    # caller's memory replace the allocation.
    is_plain = arrays and set(arrays) <= new and len(set(arrays)) == len(arrays)
    viewed = {effect.source for effect in leaf.effects if _is_shown(effect)}
    return len(arrays) if is_plain and not viewed & set(arrays) else None


def _is_shown(effect: Any) -> bool:
    return isinstance(effect, View) and bool(effect.shape)


def _returned_arrays(leaf: Leaf) -> list[int]:
    end = leaf.effects[-1]
    assert isinstance(end, Return)
    kind, *rest = end.value
    values = rest[0] if kind in (oc.V_TUPLE, oc.V_LIST) else (end.value,)
    if any(one[0] != oc.V_ARRAY for one in values):
        return []
    return [one[1] for one in values]


def is_refusal(node: Node) -> bool:
    """Tell whether a path ends in an error."""
    if not node.steps or node.steps[-1].op.name != "CHECK":
        return False
    condition = node.steps[-1].operands[0]
    made = next((one for one in node.steps if one.result == condition), None)
    return made is not None and made.op.name == "CONST_B" and not made.operands[0]
