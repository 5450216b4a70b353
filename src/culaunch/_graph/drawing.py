"""Graphs as text for Graphviz, and as drawings."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from culaunch._base.cuda import GraphNodeType
from culaunch._graph.conditions import Conditional
from culaunch._image import demangle

if TYPE_CHECKING:
    from collections.abc import Sequence


class Box(NamedTuple):
    """A node: its text, and the numbers of the nodes that it waits for."""

    lines: tuple[str, ...]
    after: tuple[int, ...]
    branch: str | None = None  # for the first nodes of a body: when it runs


class Body(NamedTuple):
    """The nodes of a conditional node's body, by their numbers."""

    label: str
    numbers: range


def boxes_of(graph: Any) -> tuple[list[Box], list[Body]]:
    """Return the nodes of a graph, as the driver has them, followed by those of its bodies."""
    boxes: list[Box] = []
    bodies: list[Body] = []
    pending: list[tuple[Any, int, str | None]] = [(graph, 0, None)]
    for one, before, label in pending:
        first = len(boxes)
        boxes += _boxes_in(one, first, before, label)
        if label is not None:
            bodies.append(Body(label, range(first, len(boxes))))
        for node in one.nodes:
            if isinstance(node.callable, Conditional):
                branches = zip(node.callable.bodies, node.callable.labels, strict=True)
                number = first + node._range[0]  # noqa: SLF001
                pending += [(body, number, label) for body, label in branches]
    return boxes, bodies


def _boxes_in(graph: Any, first: int, before: int, label: str | None) -> list[Box]:
    known = {}
    for node in graph.nodes:
        start, count = node._range  # noqa: SLF001
        known.update(dict.fromkeys(range(start, start + count), node))
    boxes = []
    for number in range(len(graph)):
        kind, name, grid, block, after = graph._describe(number)  # noqa: SLF001
        node = known.get(number)
        lines = [node.name] if node is not None and node.name is not None else []
        if kind == GraphNodeType.KERNEL and name:
            lines += [demangle(name).partition("(")[0], f"{grid} x {block}"]
        elif node is not None and isinstance(node.callable, Conditional):
            lines.append(node.callable.title)
        else:
            lines.append(KINDS.get(kind, f"node of type {kind}"))
        shifted = tuple(first + one for one in after)
        is_start = label is not None and not after
        boxes.append(
            Box(tuple(lines), (before,), label) if is_start else Box(tuple(lines), shifted)
        )
    return boxes


def dot_of(graph: Any) -> str:
    """Return a graph in Graphviz's language."""
    text = ["digraph {"]
    boxes, bodies = boxes_of(graph)
    for number, box in enumerate(boxes):
        label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in box.lines)
        text.append(f'  {number} [label="{label}"];')
        branch = "" if box.branch is None else f' [label="{box.branch}", style=dashed]'
        text += [f"  {one} -> {number}{branch};" for one in box.after]
    for index, body in enumerate(bodies):
        numbers = "".join(f" {number};" for number in body.numbers)
        text.append(f'  subgraph cluster_{index} {{ label="{body.label}";{numbers} }}')
    return "\n".join([*text, "}"]) + "\n"


def svg_of(graph: Any) -> str:
    """Return a drawing with each node below the nodes that it waits for."""
    boxes, _ = boxes_of(graph)
    rows = _rows(boxes)
    width = max((len(line) for box in boxes for line in box.lines), default=0) * _LETTER + 24
    height = max((len(box.lines) for box in boxes), default=1) * _LINE + 16
    places: dict[int, tuple[float, float]] = {}
    for depth, row in enumerate(rows):
        left = (max(map(len, rows)) - len(row)) / 2
        for column, number in enumerate(row):
            places[number] = (
                _GAP + (left + column) * (width + _GAP), _GAP + depth * (height + _GAP),
            )  # fmt: skip
    lines, shapes = [], []
    for number, box in enumerate(boxes):
        x, y = places[number]
        for one in box.after:
            from_x, from_y = places[one]
            dashes = "" if box.branch is None else 'stroke-dasharray="4" '
            lines.append(
                f'<path d="M{from_x + width / 2:g} {from_y + height:g} L{x + width / 2:g} {y:g}" '
                f'{dashes}marker-end="url(#end)"/>'
            )
        if box.branch is not None:
            shapes.append(_text(x + width / 2 + _GAP / 2, y - _GAP / 4, box.branch, "start"))
        shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{width}" height="{height}" rx="4"/>')
        for index, line in enumerate(box.lines):
            shapes.append(_text(x + width / 2, y + 8 + (index + 0.75) * _LINE, line))
    columns = max(map(len, rows), default=0)
    return _SVG.format(
        width=_GAP + columns * (width + _GAP), height=_GAP + len(rows) * (height + _GAP),
        lines="\n".join(lines), shapes="\n".join(shapes),
    )  # fmt: skip


def _text(x: float, y: float, text: str, anchor: str = "") -> str:
    place = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}" fill="#111" stroke="none"{place}>{escape(text)}</text>'


def _rows(boxes: Sequence[Box]) -> list[list[int]]:
    depths: dict[int, int] = {}

    # Nodes of another library's graph come in any order.
    def depth(number: int) -> int:
        pending = [number]
        while pending:
            one = pending[-1]
            missing = [before for before in boxes[one].after if before not in depths]
            if missing:
                pending += missing
            else:
                depths[one] = 1 + max((depths[before] for before in boxes[one].after), default=-1)
                pending.pop()
        return depths[number]

    rows: list[list[int]] = []
    for number in range(len(boxes)):
        while len(rows) <= depth(number):
            rows.append([])
        rows[depths[number]].append(number)
    return rows


_LETTER, _LINE, _GAP = 7.5, 16, 28
KINDS: dict[int, str] = {
    GraphNodeType.KERNEL: "kernel",
    GraphNodeType.MEMCPY: "copy",
    GraphNodeType.MEMSET: "fill",
    GraphNodeType.HOST: "host function",
    GraphNodeType.GRAPH: "graph",
    GraphNodeType.EMPTY: "join",
    GraphNodeType.WAIT_EVENT: "wait for an event",
    GraphNodeType.EVENT_RECORD: "record of an event",
    GraphNodeType.CONDITIONAL: "conditional node",
}
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" \
font-family="monospace" font-size="12" text-anchor="middle">
<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" \
orient="auto"><path d="M0 0 L8 4 L0 8 z" stroke="none" fill="#555"/></marker></defs>
<g stroke="#555" fill="none">
{lines}
</g>
<g fill="#eef3f8" stroke="#555">
{shapes}
</g>
</svg>
"""
