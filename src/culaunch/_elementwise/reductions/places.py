"""Where the elements of a row lie: offsets, loads and stores of a kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from culaunch._elementwise import dtypes as dt
from culaunch._elementwise.reductions.regime import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from culaunch._elementwise.reductions.regime import Regime, Source
    from culaunch._elementwise.reductions.scopes import Names


class Places:
    """The addresses of a kernel.

    Attributes
    ----------
    parameters : list of (str, object)
        Sizes and strides: their declarations, and what the host passes.
    once : dict of Source
        Arrays common to all rows, which a thread loads before its rows.
    ahead : list of Source
        Arrays that a thread copies to shared memory one row ahead.
    rows_ahead : list of Source
        Arrays with one element for each row, which a thread reads one row ahead.
    """

    def __init__(self, regime: Regime, names: Names) -> None:
        self.regime, self._names = regime, names
        self.parameters: list[tuple[str, Any]] = []
        self.once: dict[Source, None] = {}
        self.ahead: list[Source] = []
        self.rows_ahead: list[Source] = []
        self._strides: dict[str, None] = {}

    def head(self) -> list[str]:
        """Write the row of a thread, and where each array's row begins."""
        regime = self.regime
        self._parameter("long long rows", ("rows",))
        self._parameter(f"{regime.index} size", ("size",))
        lines = self._column() if regime.kind == "column" else self._row()
        lines += self.indices()
        # A thread without a row repeats another one, but none of its elements. If the output is an
        # input, it could overwrite elements that the row's own threads have yet to read.
        if regime.step >= 0:
            self._parameter("int splits", ("splits",))
            self._parameter(f"{regime.index} chunk", ("chunk",))
            lines += [
                f"const {regime.index} begin = blockIdx.y * chunk;",
                f"const {regime.index} end =",
                "    !is_row ? begin",
                "    : begin >= size || size - begin < chunk ? size : begin + chunk;",
            ]
        elif not regime.is_full:
            lines += [
                f"constexpr {regime.index} begin = 0;",
                f"const {regime.index} end = is_row ? size : 0;",
            ]
        done = {*self.once, *self.ahead, *self.rows_ahead}
        used = [one for one in self._names.used if one not in done]
        used.sort(key=lambda one: (not one.is_output, one.name))
        return [*lines, *map(self.begin, used)]

    def indices(self) -> list[str]:
        """Write the indices of the kept dimensions."""
        lines = []
        for d in reversed(range(self.regime.kept)):
            if d:
                extent = self._parameter(f"long long kept{d}", ("kept", d))
                lines += [f"const long long k{d} = rest % {extent};", f"rest /= {extent};"]
            else:
                lines.append("const long long k0 = rest;")
        return lines

    def begin(self, source: Source) -> str:
        """Write where an array's row begins."""
        regime = self.regime
        terms = [f"k{d} * {self._stride(source, 'kept', d)}" for d in range(regime.kept)]
        if regime.kind == "column" and source.inner != "z":
            step = 1 if source.inner == "u" else self._stride(source, "column", 0)
            terms.append(f"column * {step}")
        const = "" if source.is_output else "const "
        return (
            f"{const}{dt.storage(source.dtype)}* {source.name}_row = "
            f"{' + '.join([source.name, *terms])};"
        )

    def _row(self) -> list[str]:
        teams, cluster = self.regime.teams, self.regime.cluster
        first, block = "", "blockIdx.x"
        if cluster > 1:
            first, block = (
                f"blockIdx.x % {cluster} * {self.regime.team} + ",
                f"blockIdx.x / {cluster}",
            )
        lines = [f"const unsigned lane = {first}threadIdx.x;", "const bool is_first = lane == 0;"]
        if self.regime.blocks:
            # All threads of the block run the loop equally often.
            lines += [
                f"for (long long first = (long long)blockIdx.x * {teams}; first < rows;",
                f"     first += (long long)gridDim.x * {teams}) {{",
            ]
            start = "first"
        else:
            start = f"(long long)blockIdx.x * {teams}" if teams > 1 else block
        return [*lines, *self.own_row(start)]

    def own_row(self, start: str) -> list[str]:
        """Write the row of a thread."""
        if self.regime.teams == 1:
            lines = [f"const long long row = {start};", "constexpr bool is_row = true;"]
        else:
            # A thread without a row repeats the last one, because its warp combines together.
            lines = [
                f"const long long wanted = {start} + threadIdx.y;",
                "const bool is_row = wanted < rows;",
                "const long long row = is_row ? wanted : rows - 1;",
            ]
        return [*lines, "long long rest = row;"] if self.regime.kept else lines

    def _column(self) -> list[str]:
        vector = self.regime.vector
        self._parameter("long long columns", ("columns",))
        self._parameter("unsigned column_blocks", ("column_blocks",))
        lines = [
            "const unsigned lane = threadIdx.y;",
            "const bool is_first = lane == 0;",
            f"const long long wanted = {vector} *",
            f"    ((long long)(blockIdx.x % column_blocks) * {COLUMNS} + threadIdx.x);",
            "const bool is_row = wanted < columns;",
            "const long long column = is_row ? wanted : 0;",
            "const long long row = (long long)(blockIdx.x / column_blocks) * columns + column;",
        ]
        if self.regime.kept:
            lines.append("long long rest = blockIdx.x / column_blocks;")
        return lines

    def decode(self, sources: Iterable[Source]) -> list[str]:
        """Write the indices of the reduced dimensions, if there are several."""
        regime = self.regime
        if regime.reduced < 2 or not any(True for _ in sources):
            return []
        lines = [f"{regime.index} left = at;"]
        for d in reversed(range(regime.reduced)):
            if d:
                extent = self._parameter(f"{regime.index} reduced{d}", ("reduced", d))
                lines += [f"const long long i{d} = left % {extent};", f"left /= {extent};"]
            else:
                lines.append("const long long i0 = left;")
        return lines

    def load(self, sources: list[Source], *, is_last: bool | None = None) -> list[str]:
        """Write the loads of all packs that a thread has at once.

        Parameters
        ----------
        sources : list of Source
        is_last : bool, optional
            Whether this is the last time, if rows are read several times.
        """
        regime = self.regime
        if not sources:
            return []
        ahead = [one for one in sources if one in self.ahead]
        if ahead:
            # Other loads come first, so they are under way during the wait.
            return [
                *self.load([one for one in sources if one not in ahead]),
                "wait_for_copies();",
                *self._take_ahead(ahead),
                f"fetch(first + (long long)gridDim.x * {regime.teams});",
            ]
        return [
            *map(self.packs, sources),
            "#pragma unroll",
            f"for (int j = 0; j < {regime.packs}; ++j) {{",
            f"  const {regime.index} at = base + lane + j * {regime.lanes};",
            f"  {self.guard()}{{",
            *(f"    {line}" for line in self.decode(sources)),
            *(f"    {one.name}_pack[j] = {self._loaded(one, is_last)};" for one in sources),
            "  }",
            "}",
        ]

    def _loaded(self, source: Source, is_last: bool | None) -> str:
        """Write the load of a pack. Values common to all rows stay in the caches by themselves."""
        if is_last is None or self.is_common(source):
            return self.element(source)
        return f"load_again<{str(is_last).lower()}>({self.place(source)})"

    def is_common(self, source: Source) -> bool:
        """Whether all rows have the same elements of an array."""
        kept = self._names.group.kept
        return bool(kept) and self._names.trace.labels(source.node).isdisjoint(kept)

    def _take_ahead(self, sources: list[Source]) -> list[str]:
        """Write the reads of a row that was copied to shared memory."""
        regime = self.regime
        threads = regime.team * regime.teams
        return [
            *map(self.packs, sources),
            "#pragma unroll",
            f"for (int j = 0; j < {regime.packs}; ++j) {{",
            f"  if (lane + j * {regime.team} < size) {{",
            *(f"    {one.name}_pack[j] = {one.name}_next[j * {threads} + own];" for one in sources),
            "  }",
            "}",
        ]

    def guard(self, *, is_store: bool = False) -> str:
        """Write the condition of a loop's pack: it belongs to the row, and to a row to write."""
        if not self.regime.is_full:
            return "if (at < end) "
        return "if (is_row) " if is_store else ""

    def packs(self, source: Source) -> str:
        """Declare the packs of an array that a thread has at once."""
        kind = f"Pack<{dt.storage(source.dtype)}, {self.width(source)}>"
        return f"{kind} {source.name}_pack[{self.regime.packs}];"

    def width(self, source: Source) -> int:
        """Return how many elements of an array are loaded together."""
        return self.regime.vector if source.inner == "u" else 1

    def element(self, source: Source, *, is_store: bool = False) -> str:
        """Write a pack in the row."""
        return f"*{self.place(source, is_store=is_store)}"

    def place(self, source: Source, *, is_store: bool = False) -> str:
        """Write the place of a pack in the row."""
        regime = self.regime
        last = regime.reduced - 1
        indices = ["at"] if regime.reduced == 1 else [f"i{d}" for d in range(regime.reduced)]
        terms = []
        for d, index in enumerate(indices):
            if regime.kind == "row" and d == last and source.inner in "uz":
                if source.inner == "u":
                    width = f" * {regime.vector}" if regime.vector > 1 else ""
                    terms.append(f"(long long){index}{width}" if regime.is_wide else index + width)
                continue
            terms.append(f"(long long){index} * {self._stride(source, 'reduced', d)}")
        const = "" if is_store else "const "
        pack = f"{const}Pack<{dt.storage(source.dtype)}, {self.width(source)}>"
        place = " + ".join([f"{source.name}_row", *terms])
        return f"reinterpret_cast<{pack}*>({place})"

    def _stride(self, source: Source, kind: str, d: int) -> str:
        name = f"{source.name}_{kind if kind == 'column' else f'{kind[0]}{d}'}"
        return self._parameter(f"long long {name}", ("stride", source, kind, d))

    def _parameter(self, declared: str, what: Any) -> str:
        if declared not in self._strides:
            self._strides[declared] = None
            self.parameters.append((declared, what))
        return declared.rsplit(maxsplit=1)[-1]
