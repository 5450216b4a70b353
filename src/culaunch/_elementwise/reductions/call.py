"""A call of a function that reduces: traced with the shapes of its arguments, and launched."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.element_code import of_array_type
from culaunch._elementwise.in_bodies import BodyCall, layout_of
from culaunch._elementwise.kernels import loaded
from culaunch._elementwise.reductions.choice import Choice, Sizes, choose
from culaunch._elementwise.reductions.kernel_text import KernelText
from culaunch._elementwise.reductions.labels import ShapedTrace
from culaunch._elementwise.reductions.layout import Layout, product, stride
from culaunch._elementwise.reductions.regime import COLUMNS, Source, memory_dtype
from culaunch._elementwise.reductions.schedule import Schedule
from culaunch._elementwise.trace import Value

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.schedule import Group
    from culaunch._launch.launches.recording import RecordingBody


class ReductionCall(BodyCall):
    """One call in a body: its kernels, and the memory between them."""

    def __init__(self, body: RecordingBody, function: Any, arguments: tuple[Any, ...]) -> None:
        self.body, self.function, self.arguments = body, function, arguments
        self.trace = ShapedTrace(function.__name__, body.check)
        self._arrays: dict[Node, Any] = {}
        values = [self._value(i) for i in range(len(arguments))]
        results = function._trace(self.trace, values)  # noqa: SLF001
        self.results = tuple(map(of_array_type, results))
        self.dtypes = [node.dtype.name for node in self.results]
        self.schedule = Schedule(self.trace, self.results)
        self._published: dict[Node, Source] = {}

    def _value(self, index: int) -> Value:
        value = self.arguments[index]
        number = self._number(index)
        if number >= dt.FIRST_WEAK:
            weak = dt.WEAK[number - dt.FIRST_WEAK]
            if isinstance(value, (bool, complex)):
                return Value(self.trace.constant(value, weak))
            return Value(self.trace.input(index, weak))
        if number >= dt.FIRST_SCALAR:
            dtype = dt.DTYPES[number % dt.FIRST_SCALAR]
            return Value(self.trace.constant(value.item(), dtype))
        node = self.trace.array(index, dt.DTYPES[number], tuple(layout_of(self.body, value)[0]))
        self._arrays[node] = value
        return Value(node)

    def run(self, out: Any) -> Any:
        """Take part in the call; return the function's result."""
        shapes = [self.trace.shape(node) for node in self.results]
        if out is None:
            outputs = [
                self.body.empty(shape, dtype)
                for shape, dtype in zip(shapes, self.dtypes, strict=True)
            ]
        else:
            outputs = self._given(out, shapes)
        for group in self.schedule.groups:
            self._run(group, outputs, is_own=out is None)
        if out is not None:
            return out
        if self.trace.places is not None:
            made = [None if at is None else outputs[at] for at in self.trace.places]
            return made[0] if len(made) == 1 else tuple(made)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    # ---- one group

    def _run(self, group: Group, outputs: list[Any], *, is_own: bool) -> None:
        rows = product([label.size for label in group.kept])
        if group.phases or group.outputs:
            if rows == 0:
                # Later groups may reduce these rows: they then read an array without elements.
                self._keep(self._publish(group))
                return
            if not group.phases and product([one.size for one in group.reduced]) == 0:
                return
        results = [
            Source(f"y{i}", node.dtype, node, self.trace.of(node), outputs[i], True, is_own)
            for i, node in group.outputs
        ]
        published = self._publish(group)
        sources = self._inputs(group)
        every = [*results, *published, *sources.values()]
        reduced = set(group.reduced)
        elements = [one for one in every if reduced & self.trace.labels(one.node)]
        layout = Layout(group, every, elements, is_map=not group.phases)
        inputs = [one for one in elements if not one.is_output]
        # An array that all rows share takes no registers for long.
        held = [one for one in inputs if not self.trace.labels(one.node).isdisjoint(group.kept)]
        registers = sum(-(-layout.vector * one.dtype.itemsize // 4) for one in held or inputs)
        sizes = self._sizes(layout, rows)
        count = self.body.device.attribute("multiprocessor_count")
        choice = choose(layout, sizes, registers, count)
        self._launch_all(group, layout, choice, sizes, sources, [*results, *published])
        self._keep(published)

    def _keep(self, published: list[Source]) -> None:
        for one in published:
            self._published[one.node] = dataclasses.replace(one, is_output=False)

    def _publish(self, group: Group) -> list[Source]:
        made: list[Source] = []
        for reduction in group.published:
            for node in self.trace.dims:
                if node.op == "part" and node.args == (reduction,):
                    dtype = memory_dtype(node.dtype)
                    array = self.body.empty(self.trace.shape(node), dtype.name)
                    name = f"t{len(self._published) + len(made)}"
                    made.append(Source(name, dtype, node, self.trace.of(node), array, True, True))
        return made

    def _inputs(self, group: Group) -> dict[Node, Source]:
        """Return the arrays that a group reads."""
        found: dict[Node, Source] = {}
        own = {node for phase in group.phases for node in phase}
        pending = [node for _, node in group.outputs]
        pending += [arg for node in own for arg in node.args]
        pending += list(group.published)
        seen = set()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if node in self._arrays:
                found[node] = Source(
                    f"x{node.index}", node.dtype, node, self.trace.of(node), self._arrays[node]
                )
            elif node in self._published:
                found[node] = self._published[node]
            elif node.op == "position":
                group.is_ordered = True
            else:
                pending += node.args
        return found

    def _sizes(self, layout: Layout, rows: Any) -> Sizes:
        size = product([layout.size(dims) for dims in layout.reduced])
        if layout.kind == "column":
            assert layout.columns is not None
            return Sizes(rows, size, layout.columns.size)
        return Sizes(rows, size if layout.vector == 1 else size // layout.vector)

    # ---- launches

    def _launch_all(
        self,
        group: Group,
        layout: Layout,
        choice: Choice,
        sizes: Sizes,
        sources: dict[Node, Source],
        outputs: list[Source],
    ) -> None:
        regime = choice.regime
        if choice.splits is None:
            self._launch(layout, choice, sizes, KernelText(
                self.trace, group, regime, sources, outputs
            ), {}, 1)  # fmt: skip
            return
        states: dict[int, Any] = {}
        reduced = set(group.reduced)
        last = len(group.phases)
        for step in range(last + 1):
            writes = any(reduced & self.trace.labels(one.node) for one in outputs)
            text = KernelText(
                self.trace, group, dataclasses.replace(regime, step=step), sources, outputs
            )
            if step < last:
                words = -(-text.states_size(step) // 4)
                states[step] = self.body.empty((sizes.rows * choice.splits * words,), "uint32")
            over = choice.splits if step < last or writes else 1
            self._launch(layout, choice, sizes, text, states, over)

    def _launch(
        self,
        layout: Layout,
        choice: Choice,
        sizes: Sizes,
        text: KernelText,
        states: dict[int, Any],
        over: Any,
    ) -> None:
        if self.body.mode == "described":
            self.body.texts.append(text)  # type: ignore[attr-defined]
        if self.body.mode in ("abstract", "described"):
            return
        regime = text.regime
        values = {
            "rows": sizes.rows, "size": sizes.size, "columns": sizes.columns,
            "splits": choice.splits, "chunk": choice.chunk,
        }  # fmt: skip
        width = COLUMNS * regime.vector
        column_blocks = -(-sizes.columns // width)
        if regime.kind == "column":
            block: tuple[int, int] = (COLUMNS, regime.team)
            blocks = column_blocks * product([layout.size(dims) for dims in layout.kept])
        else:
            block = (regime.team, regime.teams)
            blocks = sizes.rows if regime.teams == 1 else -(-sizes.rows // regime.teams)
        values["column_blocks"] = column_blocks
        args = [self._argument(one, values, layout, states) for one in text.parameters]
        kernel = loaded(text.source, text.name, self.body.ordinal)
        self.body.launch(kernel, args, grid=(blocks, over), block=block)

    def _argument(
        self, what: Any, values: dict[str, Any], layout: Layout, states: dict[int, Any]
    ) -> Any:
        if isinstance(what, Source):
            return what.array
        if not isinstance(what, tuple):
            return self._number_of(what)
        kind = what[0]
        if kind == "states":
            return states[what[1]]
        if kind == "stride":
            _, source, which, d = what
            if which == "column":
                assert layout.columns is not None
                return stride(source, layout.columns)
            dims = (layout.kept if which == "kept" else layout.reduced)[d]
            return stride(source, dims[-1])
        if kind in ("kept", "reduced"):
            dims = (layout.kept if kind == "kept" else layout.reduced)[what[1]]
            size = layout.size(dims)
            is_last = kind == "reduced" and what[1] == len(layout.reduced) - 1
            if is_last and layout.kind == "row" and layout.vector > 1:
                return size // layout.vector
            return size
        return values[kind]

    def _number_of(self, node: Node) -> Any:
        if node.op == "count":
            return product([label.root().size for label in node.detail])  # type: ignore[attr-defined]
        return self.arguments[node.index]
