"""The C++ of traced nodes where there are two levels: a row's values, and those of its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.element_code import expression, literal
from culaunch._elementwise.loop import loaded

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import ShapedTrace
    from culaunch._elementwise.reductions.regime import Regime, Source
    from culaunch._elementwise.reductions.schedule import Group

# Operations whose results are worth a register for each element.
_SLOW = ("exp", "expm1", "log", "log1p", "tanh", "erf", "pow")
_KEPT = 32  # elements of a thread
# Represents the index of a row among those that a thread works on.
_W = "\x00"


class Names:
    """The names of nodes, and the statements that a row computes once.

    Attributes
    ----------
    row : list of str
        Statements, taken by the kernel where they must stand.
    row_loads : dict of Source to str
        The names of values that a row reads from arrays. A kernel reads them first, because a
        reduction waits for all reads before it.
    used : dict of Source
        In the order of their first use.
    parameters : list of (str, object)
        Scalars: their declarations, and what the host passes.
    """

    def __init__(
        self, trace: ShapedTrace, group: Group, regime: Regime, sources: dict[Node, Source]
    ) -> None:
        self.trace, self.group, self.regime, self.sources = trace, group, regime, sources
        self.row: list[str] = []
        self.row_loads: dict[Source, str] = {}
        self.used: dict[Source, None] = {}
        self.parameters: list[tuple[str, Any]] = []
        self.definitions: dict[str, None] = {}
        self.operations: list[str] = []
        self.kept: dict[Node, str] = {}
        self._reduced = set(group.reduced)
        self._names: dict[Node, str] = {}
        self._reciprocals: dict[Node, str] = {}
        self._count = 0

    def is_element(self, node: Node) -> bool:
        """Whether a node differs from element to element of a row."""
        return not self._reduced.isdisjoint(self.trace.labels(node))

    def name(self, node: Node, name: str) -> None:
        """Give a node a name; a row's has an index."""
        self._names[node] = name

    def at_row(self, node: Node, index: str) -> str:
        """Return the C++ of a row's value."""
        return self._get(node, None).replace(_W, index)

    def fresh(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"v{self._count - 1}"

    def _get(self, node: Node, scope: ElementScope | None) -> str:
        # Iterative, because a chain may be longer than Python's stack.
        pending = [node]
        while pending:
            top = pending[-1]
            own = self._own(top, scope)
            if top in own:
                pending.pop()
                continue
            inner = () if top.op in ("input", "part", "reduce") else top.args
            missing = [arg for arg in inner if arg not in self._own(arg, scope)]
            if missing:
                pending.extend(reversed(missing))
                continue
            own[top] = self._write(top, scope)
            pending.pop()
        return self._own(node, scope)[node]

    def _own(self, node: Node, scope: ElementScope | None) -> dict[Node, str]:
        return scope.names if scope is not None and self.is_element(node) else self._names

    def _write(self, node: Node, scope: ElementScope | None) -> str:
        if node.op == "constant":
            assert node.number is not None
            return literal(node.number, node.dtype)
        if node.op == "count":
            return self._scalar(f"count{self._count_of('count')}", "long long", node)
        if node.op == "input" and node.dtype.is_weak:
            return self._scalar(f"s{node.index}", dt.compute(node.dtype), node)
        if node.op == "position":
            if scope is None or not self.is_element(node):
                return "0ll"  # of one element
            return "position" if self.regime.kind == "column" else "(position + k)"
        if node in self.sources:
            return self._load(self.sources[node], scope)
        if node.op in ("part", "reduce"):
            raise AssertionError("a reduction is used before its phase")
        code = self._expression(node, scope)
        if scope is not None and self.is_element(node):
            name = self.fresh()
            scope.lines.append(f"const {dt.compute(node.dtype)} {name} = {code};")
            self._keep(node, name, scope)
            return name
        if node.op == "squeeze":
            return code
        return self._row_value(node.dtype, code)

    def _keep(self, node: Node, name: str, scope: ElementScope) -> None:
        """Keep slow values for the next passes, if they fit the registers."""
        regime = self.regime
        size = regime.packs * regime.vector
        if node.op not in _SLOW or not regime.is_cached or size > _KEPT or len(self.kept) >= 1:
            return
        kept = f"kept_{name}"
        kind = dt.compute(node.dtype)
        self.row.append(f"{kind} {kept}[{regime.packs}][{regime.vector}];")
        scope.lines.append(f"{kept}[j][k] = {name};")
        self.kept[node] = f"{kept}[j][k]"

    def _row_value(self, dtype: dt.DType, code: str) -> str:
        name = self.fresh()
        self.row += self._for_rows(dtype, name, code.replace(_W, "w"))
        return f"{name}[{_W}]"

    def _for_rows(self, dtype: dt.DType, name: str, code: str) -> list[str]:
        """Write a value of each row that a thread works on."""
        return [
            f"{dt.compute(dtype)} {name}[{self.regime.rows}];",
            "#pragma unroll",
            f"for (int w = 0; w < {self.regime.rows}; ++w) {name}[w] = {code};",
        ]

    def _expression(self, node: Node, scope: ElementScope | None) -> str:
        args = [self._own(arg, scope)[arg] for arg in node.args]
        if scope is not None and self.is_element(node):
            if self._has_reciprocal(node):
                args[1] = self._reciprocal(node.args[1], args[1])
            row = "k" if self.regime.kind == "column" else "0"
            args = [arg.replace(_W, row) for arg in args]
        if node.op == "squeeze":
            return args[0]
        if node.op == "call":
            call: Any = node.detail
            name, definitions = call
            self.definitions |= dict.fromkeys(definitions)
            return f"{name}({', '.join(args)})"
        if node.op not in ("cast", "round_to"):
            self.operations.append(node.op)
        if scope is not None and self.is_element(node) and self._has_reciprocal(node):
            return f"{args[1]}.of({args[0]})"
        return expression(node, args)

    def _has_reciprocal(self, node: Node) -> bool:
        """Whether an element is divided by a row's value, and need not be exactly rounded."""
        if node.op != "divide" or self.is_element(node.args[1]):
            return False
        dtype = node.dtype
        return dtype.is_half or (self.trace.is_gradient and dtype.name == "float32")

    def _reciprocal(self, divisor: Node, code: str) -> str:
        """Return the reciprocal of a row's value, which is computed once."""
        if divisor not in self._reciprocals:
            name = self.fresh()
            self.row += [
                f"Reciprocal {name}[{self.regime.rows}];",
                "#pragma unroll",
                f"for (int w = 0; w < {self.regime.rows}; ++w)",
                f"  {name}[w] = Reciprocal({code.replace(_W, 'w')});",
            ]
            self._reciprocals[divisor] = f"{name}[{_W}]"
        return self._reciprocals[divisor]

    def _load(self, source: Source, scope: ElementScope | None) -> str:
        self.used[source] = None
        if scope is not None and self.is_element(source.node):
            scope.sources[source] = None
            lane = "k" if source.inner == "u" and self.regime.vector > 1 else "0"
            return loaded(f"{source.name}_pack[j].at[{lane}]", source.dtype)
        name = self.row_loads.setdefault(source, f"{source.name}_value")
        return f"{name}[{_W}]"

    def load_rows(self, ahead: list[Source]) -> list[str]:
        """Write the reads of a row's values; some were read one row ahead."""
        lines = []
        for source, name in self.row_loads.items():
            step = {"u": "w", "z": "0"}.get(source.inner, f"w * {source.name}_column")
            at = step if self.regime.kind == "column" else "0"
            place = f"{source.name}_ahead" if source in ahead else f"{source.name}_row[{at}]"
            lines += self._for_rows(source.dtype, name, loaded(place, source.dtype))
        return lines

    def _scalar(self, name: str, spelling: str, node: Node) -> str:
        self.parameters.append((f"{spelling} {name}", node))
        return name

    def _count_of(self, prefix: str) -> int:
        return sum(declared.split()[-1].startswith(prefix) for declared, _ in self.parameters)


class ElementScope:
    """The computation of each element, in one loop.

    Attributes
    ----------
    lines : list of str
    sources : dict of Source
        What it reads, element by element.
    """

    def __init__(self, names: Names) -> None:
        self._all = names
        self.names: dict[Node, str] = dict(names.kept)
        self.lines: list[str] = []
        self.sources: dict[Source, None] = {}

    def get(self, node: Node) -> str:
        """Return the C++ of a node's element."""
        row = "k" if self._all.regime.kind == "column" else "0"
        return self._all._get(node, self).replace(_W, row)  # noqa: SLF001
