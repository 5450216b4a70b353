"""The CUDA source of a group's kernel in one regime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.element_code import title_of
from culaunch._elementwise.helper_files import helpers_for, pack
from culaunch._elementwise.reductions.across import AcrossText
from culaunch._elementwise.reductions.phases import Phase
from culaunch._elementwise.reductions.places import Places
from culaunch._elementwise.reductions.regime import COLUMNS, COPY
from culaunch._elementwise.reductions.row_to_row import fetch, load_once
from culaunch._elementwise.reductions.scopes import ElementScope, Names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import ShapedTrace
    from culaunch._elementwise.reductions.regime import Regime, Source
    from culaunch._elementwise.reductions.schedule import Group

_AHEAD = 32768  # bytes of the next rows of a block
# Elements of a pack, threads of a team and packs of a thread, if threads have registers to load all
# common values at once. Others had fewer blocks at once, and took up to 40 % more time (H200).
_WITH_ROOM = ((4, 256, 2), (4, 512, 4))
_HALF = {"float16": "half", "bfloat16": "bfloat16"}


class KernelText:
    """A kernel's source.

    Attributes
    ----------
    name, source : str
    shared : int
        Bytes of shared memory that a launch gives to a block.
    parameters : list of object
        What the host passes, in order: a source's array, a node whose number is passed, or a tuple
        that names a size.
    """

    def __init__(
        self,
        trace: ShapedTrace,
        group: Group,
        regime: Regime,
        sources: dict[Node, Source],
        outputs: list[Source],
        across: Group | None = None,
    ) -> None:
        self.regime = regime
        self._names = Names(trace, group, regime, sources)
        self._outputs = outputs
        self._phases = [Phase(nodes, p) for p, nodes in enumerate(group.phases)]
        self._places = Places(regime, self._names)
        self._body: list[str] = []
        self._cached: dict[Source, None] = {}
        self._across_rows: AcrossText | None = None
        if across is not None:
            (nodes,) = across.phases
            self._across_rows = AcrossText(Phase(nodes, len(self._phases)), regime)
        done = max(regime.step, 0)
        last = len(self._phases)
        self._needs_states = list(range(done))
        for phase in self._phases[:done]:
            self._resume(phase)
        if regime.step < 0:
            for phase in self._phases:
                self._run(phase)
            self._write()
        elif done < last:
            self._needs_states.append(done)
            self._run(self._phases[done])
        else:
            self._write()
        self._assemble()

    # ---- phases

    def _run(self, phase: Phase) -> None:
        """Write a pass over the row."""
        n, regime = phase.number, self.regime
        scope = ElementScope(self._names)
        values = []
        for node, detail in zip(phase.reductions, phase.details, strict=True):
            self._names.operations.append(detail.combiner.name)
            values += [self._element(scope, arg) for arg in node.args]
        take = f"partial{n}[k] = Combine{n}()(partial{n}[k], Partial{n}{{{', '.join(values)}}});"
        self._flush()
        self._body += [
            f"Partial{n} partial{n}[{regime.vector}];",
            "#pragma unroll",
            f"for (int k = 0; k < {regime.vector}; ++k) partial{n}[k] = identity{n}();",
        ]
        self._loop(scope, [*scope.lines, take], [])
        self._together(phase)
        if regime.step >= 0:
            where = self._states_at("blockIdx.y")
            self._body += [
                "if (is_first && is_row) {",
                f"  for (int w = 0; w < {regime.rows}; ++w)",
                f"    reinterpret_cast<Partial{n}*>(states{n})[{where}] = partial{n}[w];",
                "}",
            ]
        self._publish(phase)

    def _element(self, scope: ElementScope, node: Node) -> str:
        if self._names.is_element(node):
            return scope.get(node)
        return self._names.at_row(node, "k" if self.regime.kind == "column" else "0")

    def _together(self, phase: Phase) -> None:
        """Combine the partial results of a team's threads. All threads get the result."""
        n, regime = phase.number, self.regime
        combine = f"Combine{n}()"
        if regime.kind == "row":
            half = regime.vector // 2
            while half:
                self._body += [
                    f"partial{n}[{k}] = {combine}(partial{n}[{k}], partial{n}[{k + half}]);"
                    for k in range(half)
                ]
                half //= 2
            self._across(phase)
            return
        size = COLUMNS * regime.vector
        self._body += [
            f"__shared__ Partial{n} shared{n}[{regime.team}][{size}];",
            "#pragma unroll",
            f"for (int w = 0; w < {regime.vector}; ++w)",
            f"  shared{n}[lane][w * {COLUMNS} + threadIdx.x] = partial{n}[w];",
            "__syncthreads();",
            "#pragma unroll",
            f"for (int w = 0; w < {regime.vector}; ++w) {{",
            f"  partial{n}[w] = shared{n}[0][w * {COLUMNS} + threadIdx.x];",
            "#pragma unroll",
            f"  for (int t = 1; t < {regime.team}; ++t) {{",
            f"    partial{n}[w] =",
            f"        {combine}(partial{n}[w], shared{n}[t][w * {COLUMNS} + threadIdx.x]);",
            "  }",
            "}",
        ]

    def _across(self, phase: Phase) -> None:
        n, regime = phase.number, self.regime
        ordered = "true" if phase.is_ordered else "false"
        if regime.cluster > 1:
            states = regime.lanes // 32
            self._body.append(f"__shared__ Partial{n} shared{n}[{states}];")
            if n == 0:  # no block may write to one that has not started
                self._body.append("cluster_wait();")
            shape, shared = f"{regime.team}, {regime.cluster}", f", shared{n}"
            function = "across_cluster"
        elif regime.team > 32:
            shape, shared = str(regime.team), f", shared{n}"
            self._body.append(f"__shared__ Partial{n} shared{n}[{regime.team // 32}];")
            function = "across_block"
        else:
            shape, shared, function = str(regime.team), "", "across_lanes"
        if regime.team > 1:
            self._body += [
                f"partial{n}[0] =",
                f"    {function}<{shape}, {ordered}>(partial{n}[0]{shared}, Combine{n}());",
            ]

    def _resume(self, phase: Phase) -> None:
        """Write the combination of the partial results from an earlier kernel's blocks."""
        n, regime = phase.number, self.regime
        at = f"reinterpret_cast<const Partial{n}*>(states{n})[{self._states_at('s')}]"
        self._body += [
            f"Partial{n} partial{n}[{regime.vector}];",
            f"for (int w = 0; w < {regime.rows}; ++w) {{",
            f"  partial{n}[w] = identity{n}();",
            "#pragma unroll 4",
            f"  for (int s = lane; s < splits; s += {regime.team})",
            f"    partial{n}[w] = Combine{n}()(partial{n}[w], {at});",
            "}",
        ]
        if regime.kind == "row":
            self._across(phase)
        else:
            self._together(phase)
        self._publish(phase)

    def _states_at(self, split: str) -> str:
        if self.regime.kind == "row":
            return f"row * splits + {split}"
        return f"{split} * (long long)rows + row + w"

    def _publish(self, phase: Phase) -> None:
        for r, node in enumerate(phase.reductions):
            for part in self._components(node):
                name = f"partial{phase.number}[\x00].c{r}_{part.index}"
                self._names.name(part, name)

    def _components(self, node: Node) -> Iterable[Node]:
        return (one for one in self._names.trace.dims if one.op == "part" and one.args == (node,))

    # ---- results

    def _write(self) -> None:
        """Write the results of the row and of its elements."""
        names, regime = self._names, self.regime
        rows = [one for one in self._outputs if not names.is_element(one.node)]
        elements = [one for one in self._outputs if names.is_element(one.node)]
        once = [(one, names.at_row(one.node, "w")) for one in rows]
        scope = ElementScope(names)
        lines = [
            f"{one.name}_pack.at[k] = {_stored(one, scope.get(one.node))};" for one in elements
        ]
        across = self._across_rows
        if across is not None:
            nodes = across.phase.reductions
            lines.append(across.take([self._element(scope, a) for one in nodes for a in one.args]))
            self._needs_states.append(across.phase.number)
        self._flush()
        if rows:
            first = "is_first && is_row" + (" && blockIdx.y == 0" if regime.step >= 0 else "")
            self._body += [f"if ({first}) {{", "#pragma unroll"]
            self._body.append(f"  for (int w = 0; w < {regime.rows}; ++w) {{")
            for one, code in once:
                names.used[one] = None
                step = {"u": "w", "z": "0"}.get(one.inner, f"w * {one.name}_column")
                at = step if regime.kind == "column" else "0"
                self._body.append(f"    {one.name}_row[{at}] = {_stored(one, code)};")
            self._body += ["  }", "}"]
        if elements or across is not None:
            names.used |= dict.fromkeys(elements)
            self._loop(scope, [*scope.lines, *lines], elements)

    # ---- loops

    def _loop(self, scope: ElementScope, lines: list[str], outputs: list[Source]) -> None:
        """Write a loop over the elements of a row."""
        regime, places = self.regime, self._places
        step = regime.lanes * regime.packs
        # The L1 cache holds the values common to all rows. Registers are for a row's own values,
        # but blocks that go from row to row load the common ones once.
        late = [one for one in scope.sources if regime.is_cached and places.is_common(one)]
        if regime.blocks:
            places.once |= dict.fromkeys(late)
            late = []
        common = {*late, *places.once}
        first = list(map(places.packs, late))
        shape = (regime.vector, regime.team, regime.packs)
        if late and (regime.team <= 32 or shape in _WITH_ROOM):
            # The compiler moves no load across a store: all loads before the first store overlap.
            first, late = places.load(late), []
        at = f"const {regime.index} at = base + lane + j * {regime.lanes};"
        inner = [
            "#pragma unroll",
            f"for (int j = 0; j < {regime.packs}; ++j) {{",
            f"  {at}",
            f"  {places.guard(is_store=bool(outputs))}{{",
            *(f"    {line}" for line in places.decode([*outputs, *late])),
            *(f"    {one.name}_pack[j] = {places.element(one)};" for one in late),
        ]
        inner += [
            f"    Pack<{dt.storage(one.dtype)}, {places.width(one)}> {one.name}_pack;"
            for one in outputs
        ]
        position = "at" if regime.kind == "column" else f"at * {regime.vector}"
        inner += [
            f"    const long long position = (long long){position};",
            "#pragma unroll",
            f"    for (int k = 0; k < {regime.vector}; ++k) {{",
            *(f"      {line}" for line in lines),
            "    }",
            *(f"    {places.element(one, is_store=True)} = {one.name}_pack;" for one in outputs),
            "  }",
            "}",
        ]
        if not any("position" in line for line in lines):
            inner = [line for line in inner if "long long position" not in line]
        if regime.is_cached:
            self._cached |= dict.fromkeys(one for one in scope.sources if one not in common)
            self._body += ["{", *first, *inner, "}"] if first else inner
            return
        if regime.is_full:
            loop = ["{", f"  constexpr {regime.index} base = 0;"]
            loads = places.load(list(scope.sources), is_last=bool(outputs))
        else:
            loop = [f"for ({regime.index} base = begin; base < end; base += {step}) {{"]
            loads = places.load(list(scope.sources))
        self._body += [*loop, *(f"  {line}" for line in [*loads, *inner]), "}"]

    def _flush(self) -> None:
        self._body += self._names.row
        self._names.row.clear()

    # ---- the whole

    def _assemble(self) -> None:
        regime, names = self.regime, self._names
        places = self._places
        if self._across_rows is not None:
            places.ahead = self._ahead()
            places.rows_ahead = list(names.row_loads) if places.ahead else []
        self.shared = len(places.ahead) * regime.row_bytes
        head = places.head()
        phases = list(self._phases)
        launch = str(regime.team * regime.teams)
        if self._across_rows is not None:
            loop = next(i for i, line in enumerate(head) if line.startswith("for"))
            head[loop:loop] = [
                *self._across_rows.before,
                *load_once(places),
                *fetch(places),
            ]
            phases.append(self._across_rows.phase)
            if regime.team > 32 and len(self._phases) == 1:
                # The next row's partial results overwrite memory that other warps may still read.
                self._body.append("__syncthreads();")
            self._body += ["}", *self._across_rows.after]
            launch += f", {regime.blocks}"
        if regime.cluster > 1:
            head.append("cluster_arrive();")
        head += names.load_rows(places.rows_ahead)
        if regime.is_cached:
            head += [f"constexpr {regime.index} base = 0;", *places.load(list(self._cached))]
        arrays = [
            (f"{'' if one.is_output else 'const '}{dt.storage(one.dtype)}* {one.name}", one)
            for one in sorted(names.used, key=lambda one: (not one.is_output, one.name))
        ]
        states = [(f"unsigned* states{n}", ("states", n)) for n in self._needs_states]
        parameters = [*arrays, *states, *names.parameters, *places.parameters]
        self.parameters: list[Any] = [one for _, one in parameters]
        definitions = [
            *names.definitions,
            *(one for phase in phases for one in phase.definitions),
        ]
        structures = [phase.definition for phase in phases]
        dtype = self._outputs[0].dtype.name
        operations = list(dict.fromkeys(names.operations)) or ["reduce"]
        self.name = f"{title_of(operations)}_{dtype}_{regime.suffix}"
        body = "".join(
            line + "\n" if line.startswith("#") else f"  {line}\n" for line in [*head, *self._body]
        )
        text = "\n".join([*dict.fromkeys(definitions), *structures])
        kernel = (
            f"__global__ void __launch_bounds__({launch})\n{self.name}("
            f"{', '.join(declared for declared, _ in parameters)}) {{\n{body}}}\n"
        )
        parts = [pack(), helpers_for(text + kernel), text, kernel]
        self.source = "\n".join(part for part in parts if part)

    def _ahead(self) -> list[Source]:
        """Return the arrays whose next row fits shared memory while a row is in registers."""
        regime = self.regime
        whole = [
            one
            for one in self._cached
            if one.inner == "u" and regime.vector * one.dtype.itemsize == COPY
        ]
        return whole[: _AHEAD // regime.row_bytes]

    def states_size(self, phase: int) -> int:
        """Return the bytes of a phase's partial result."""
        return self._phases[phase].size


def _stored(source: Source, code: str) -> str:
    kind = _HALF.get(source.dtype.name)
    return f"store_{kind}({code})" if kind else code
