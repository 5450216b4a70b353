"""Reductions along the other dimensions of a group, from the same pass over its elements.

The gradient of a weight is a sum over the rows that the gradient of the argument goes through. A
kernel that does both has blocks that go from row to row. Each thread adds up its own columns, each
block writes one partial result per column, and a second kernel combines them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._elementwise.reductions.phases import Phase
    from culaunch._elementwise.reductions.regime import Regime

WIDEST = 16  # bytes of a column's partial result; each block has one per thread in shared memory


class AcrossText:
    """The lines of a kernel's source that reduce along the rows.

    Parameters
    ----------
    phase : Phase
        The reductions, with a number that no phase of the rows has.
    """

    def __init__(self, phase: Phase, regime: Regime) -> None:
        self.phase, self._regime = phase, regime

    @property
    def before(self) -> list[str]:
        """Declare the partial results of a thread's columns."""
        n, regime = self.phase.number, self._regime
        return [
            f"Partial{n} across[{regime.packs}][{regime.vector}];",
            "#pragma unroll",
            f"for (int j = 0; j < {regime.packs}; ++j) {{",
            "#pragma unroll",
            f"  for (int k = 0; k < {regime.vector}; ++k) across[j][k] = identity{n}();",
            "}",
        ]

    def take(self, values: list[str]) -> str:
        """Add an element of the row."""
        n = self.phase.number
        one = f"Combine{n}()(across[j][k], Partial{n}{{{', '.join(values)}}})"
        # A thread without a row repeats the last row.
        return f"if (is_row) across[j][k] = {one};"

    @property
    def after(self) -> list[str]:
        """Write the partial results of the block."""
        n, regime = self.phase.number, self._regime
        row = regime.team * regime.vector
        out = f"reinterpret_cast<Partial{n}*>(states{n})"
        at = f"(long long)blockIdx.x * size * {regime.vector} + j * {row}"
        if regime.teams == 1:
            return [
                "#pragma unroll",
                f"for (int j = 0; j < {regime.packs}; ++j) {{",
                f"  if (lane + j * {regime.team} < size) {{",
                "#pragma unroll",
                f"    for (int k = 0; k < {regime.vector}; ++k)",
                f"      {out}[{at} + lane * {regime.vector} + k] = across[j][k];",
                "  }",
                "}",
            ]
        threads = regime.team * regime.teams
        return [
            f"__shared__ Partial{n} shared{n}[{regime.teams}][{row}];",
            "#pragma unroll",
            f"for (int j = 0; j < {regime.packs}; ++j) {{",
            "#pragma unroll",
            f"  for (int k = 0; k < {regime.vector}; ++k)",
            f"    shared{n}[threadIdx.y][lane * {regime.vector} + k] = across[j][k];",
            "  __syncthreads();",
            f"  const unsigned own = threadIdx.y * {regime.team} + lane;",
            f"  for (unsigned e = own; e < {row}; e += {threads}) {{",
            f"    Partial{n} all = shared{n}[0][e];",
            "#pragma unroll 4",
            f"    for (int t = 1; t < {regime.teams}; ++t)",
            f"      all = Combine{n}()(all, shared{n}[t][e]);",
            f"    if (e / {regime.vector} + j * {regime.team} < size) {out}[{at} + e] = all;",
            "  }",
            "  __syncthreads();",
            "}",
        ]
