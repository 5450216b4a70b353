"""A call of a function that reduces: traced with the shapes of its arguments, and launched."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.element_code import of_array_type
from culaunch._elementwise.in_bodies import BodyCall, layout_of
from culaunch._elementwise.kernels import loaded
from culaunch._elementwise.reductions.across import WIDEST
from culaunch._elementwise.reductions.choice import Choice, Sizes, choose, choose_across, combining
from culaunch._elementwise.reductions.kernel_text import KernelText
from culaunch._elementwise.reductions.labels import ShapedTrace
from culaunch._elementwise.reductions.layout import Layout, product, stride
from culaunch._elementwise.reductions.overlap import require_apart
from culaunch._elementwise.reductions.pairs import pair_across
from culaunch._elementwise.reductions.phases import Phase
from culaunch._elementwise.reductions.regime import COLUMNS, Source, memory_dtype
from culaunch._elementwise.reductions.schedule import Schedule
from culaunch._elementwise.trace import Value

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.schedule import Group
    from culaunch._launch.launches.recording import RecordingBody


@dataclasses.dataclass(frozen=True)
class _Work:
    """The arrays of a group's kernel, and how they lie."""

    # What it writes: for the caller, and for later groups.
    results: list[Source]
    published: list[Source]
    sources: dict[Node, Source]
    """What it reads."""
    layout: Layout
    sizes: Sizes
    registers: int
    """Of 4 bytes, for one pack of each array that is read."""
    has_common: bool
    """Whether it reads an array that has the same elements for all rows."""
    writes_elements: bool
    """Whether it writes elements of rows, not only what rows are reduced to."""

    @property
    def written(self) -> list[Source]:
        return [*self.results, *self.published]


class ReductionCall(BodyCall):
    """One call in a body: its kernels, and the memory between them.

    Attributes
    ----------
    checks_overlap : bool
        Whether outputs are compared with the arguments. A call outside of a body has done this.
    """

    checks_overlap = False

    def __init__(self, body: RecordingBody, function: Any, arguments: tuple[Any, ...]) -> None:
        self.body, self.function, self.arguments = body, function, arguments
        self.trace = ShapedTrace(function.__name__, body.check)
        self._arrays: dict[Node, Any] = {}
        values = [self._value(i) for i in range(len(arguments))]
        results = function._trace(self.trace, values)  # noqa: SLF001
        self.results = tuple(map(of_array_type, results))
        self.dtypes = [node.dtype.name for node in self.results]
        self.schedule = Schedule(self.trace, self.results)
        pair_across(self.schedule)
        self._published: dict[Node, Source] = {}

    def _value(self, index: int) -> Value:
        value = self.arguments[index]
        number = self._number(index)
        dtype = dt.operand_type(number)
        if dtype.is_weak:
            if isinstance(value, (bool, complex)):
                return Value(self.trace.constant(value, dtype))
            return Value(self.trace.input(index, dtype))
        if number >= dt.FIRST_SCALAR:
            return Value(self.trace.constant(value.item(), dtype))
        node = self.trace.array(index, dtype, tuple(layout_of(self.body, value)[0]))
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
            outputs = self._outputs(out, shapes)
            if self.checks_overlap:
                self._require_apart(outputs)
        done: set[int] = set()
        for group in self.schedule.groups:
            if id(group) in done:
                continue
            if group.across is not None and self._run_across(group, outputs, is_own=out is None):
                done.add(id(group.across))
            else:
                self._run(group, outputs, is_own=out is None)
        if out is not None:
            return out
        if self.trace.places is not None:
            made = [None if at is None else outputs[at] for at in self.trace.places]
            return made[0] if len(made) == 1 else tuple(made)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @property
    def runs_in_place(self) -> bool:
        """Whether it may write its result over one of its arguments.

        A kernel reads all of an element's row, or reads the element last, before it writes it. A
        second group of reductions would read what the first one has written.
        """
        return len(self.results) == 1 and len(self.schedule.groups) == 1

    def _require_apart(self, outputs: list[Any]) -> None:
        """Check that outputs share no memory that the kernels still read."""
        names = self.function._parameters  # noqa: SLF001
        arguments = {names[node.index]: value for node, value in self._arrays.items()}
        name, in_place = self.function.__name__, self.runs_in_place
        require_apart(self.body, name, outputs, arguments, runs_in_place=in_place)

    # ---- one group

    def _run(self, group: Group, outputs: list[Any], *, is_own: bool) -> None:
        rows = product([label.size for label in group.kept])
        if group.phases or group.outputs:
            if rows == 0:
                # Later groups may reduce these rows. They then read an array without elements.
                published = self._publish(group.published)
                self._allocate(published)
                self._keep(published)
                return
            if not group.phases and product([one.size for one in group.reduced]) == 0:
                return
        nodes = [node for phase in group.phases for node in phase]
        work = self._work(
            group,
            self._results(group, outputs, is_own=is_own),
            self._publish(group.published),
            self._inputs([*(node for _, node in group.outputs), *nodes], group),
        )
        count = self.body.device.attribute("multiprocessor_count")
        # Threads without a reduction do not wait for each other, so they need no cluster.
        clusters = self.body.device.attribute("cluster_launch") if group.phases else 0
        choice = choose(
            work.layout, work.sizes, work.registers, count, clusters,
            has_common=work.has_common, writes_elements=work.writes_elements,
            phases=len(group.phases),
        )  # fmt: skip
        self._allocate(work.published)
        self._launch_all(group, work, choice)
        self._keep(work.published)

    def _run_across(self, group: Group, outputs: list[Any], *, is_own: bool) -> bool:
        """Run a group and the one across it, if they can share a pass and this is faster."""
        other = group.across
        assert other is not None
        (nodes,) = other.phases
        phase = Phase(nodes, len(group.phases))
        if phase.size > WIDEST or product([one.size for one in group.kept]) == 0:
            return False
        columns = self._work(other, self._results(other, outputs, is_own=is_own), [], {})
        if columns.layout.kind != "column" or columns.layout.columns is not other.kept[-1]:
            return False
        own = [node for one in group.phases for node in one]
        work = self._work(
            group,
            self._results(group, outputs, is_own=is_own),
            self._publish(self.schedule.published_without(group, other)),
            self._inputs([*(node for _, node in group.outputs), *own, *nodes], group),
        )
        layout = work.layout
        if layout.kind != "row" or layout.reduced != [list(group.reduced)]:
            return False
        words = -(-phase.size // 4)
        count = self.body.device.attribute("multiprocessor_count")
        choice = choose_across(layout, work.sizes, work.registers + layout.vector * words, count)
        if choice is None:
            return False
        self._allocate(work.published)
        states = self.body.empty((choice.splits * columns.sizes.rows * words,), "uint32")
        text = KernelText(self.trace, group, choice.regime, work.sources, work.written, other)
        self._launch(work, choice, text, {phase.number: states}, 1)
        self._keep(work.published)
        regime = combining(columns.layout)
        text = KernelText(self.trace, other, regime, {}, columns.written)
        self._launch(columns, Choice(regime, choice.splits, 1), text, {0: states}, 1)
        return True

    def _results(self, group: Group, outputs: list[Any], *, is_own: bool) -> list[Source]:
        return [
            Source(f"y{i}", node.dtype, node, self.trace.of(node), outputs[i], True, is_own)
            for i, node in group.outputs
        ]

    def _work(
        self,
        group: Group,
        results: list[Source],
        published: list[Source],
        sources: dict[Node, Source],
    ) -> _Work:
        every = [*results, *published, *sources.values()]
        reduced = set(group.reduced)
        elements = [one for one in every if reduced & self.trace.labels(one.node)]
        layout = Layout(group, every, elements, is_map=not group.phases)
        inputs = [one for one in elements if not one.is_output]
        # An array common to all rows does not occupy registers for long.
        held = [one for one in inputs if not self.trace.labels(one.node).isdisjoint(group.kept)]
        registers = sum(-(-layout.vector * one.dtype.itemsize // 4) for one in held or inputs)
        sizes = self._sizes(layout, product([label.size for label in group.kept]))
        has_common = len(held) < len(inputs)
        writes = len(inputs) < len(elements)
        return _Work(results, published, sources, layout, sizes, registers, has_common, writes)

    def _keep(self, published: list[Source]) -> None:
        for one in published:
            self._published[one.node] = dataclasses.replace(one, is_output=False)

    def _publish(self, reductions: list[Node]) -> list[Source]:
        """Return the layouts of a group's results for later groups, without memory."""
        made: list[Source] = []
        for reduction in reductions:
            for node in self.trace.dims:
                if node.op == "part" and node.args == (reduction,):
                    dtype = memory_dtype(node.dtype)
                    name = f"t{len(self._published) + len(made)}"
                    made.append(Source(name, dtype, node, self.trace.of(node), None, True, True))
        return made

    def _allocate(self, published: list[Source]) -> None:
        for one in published:
            one.array = self.body.empty(self.trace.shape(one.node), one.dtype.name)

    def _inputs(self, nodes: list[Node], group: Group) -> dict[Node, Source]:
        """Return the arrays that results and reductions read."""
        found: dict[Node, Source] = {}
        pending = list(nodes)
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

    def _launch_all(self, group: Group, work: _Work, choice: Choice) -> None:
        regime, sources, outputs = choice.regime, work.sources, work.written
        if choice.splits is None:
            text = KernelText(self.trace, group, regime, sources, outputs)
            self._launch(work, choice, text, {}, 1)
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
                size = work.sizes.rows * choice.splits * words
                states[step] = self.body.empty((size,), "uint32")
            over = choice.splits if step < last or writes else 1
            self._launch(work, choice, text, states, over)

    def _launch(
        self, work: _Work, choice: Choice, text: KernelText, states: dict[int, Any], over: Any
    ) -> None:
        if self.body.mode == "described":
            self.body.texts.append(text)  # type: ignore[attr-defined]
        if self.body.mode in ("abstract", "described"):
            return
        regime, layout, sizes = text.regime, work.layout, work.sizes
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
            blocks = sizes.rows * regime.cluster
            blocks = blocks if regime.teams == 1 else -(-sizes.rows // regime.teams)
            if regime.blocks:
                blocks = choice.splits
        values["column_blocks"] = column_blocks
        args = [self._argument(one, values, layout, states) for one in text.parameters]
        kernel = loaded(text.source, text.name, self.body.ordinal)
        options: dict[str, Any] = {"shared_memory": text.shared} if text.shared else {}
        if regime.cluster > 1:
            options["cluster"] = (regime.cluster, 1, 1)
        self.body.launch(kernel, args, grid=(blocks, over), block=block, **options)

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
