"""The loads of blocks that go from row to row: common arrays once, and a row one row ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._elementwise import dtypes as dt

if TYPE_CHECKING:
    from culaunch._elementwise.reductions.places import Places


def load_once(places: Places) -> list[str]:
    """Write the loads of the arrays that are common to all rows."""
    if not places.once:
        return []
    rows = [f"const {dt.storage(one.dtype)}* {one.name}_row = {one.name};" for one in places.once]
    return [
        *rows,
        *map(places.packs, places.once),
        "#pragma unroll",
        f"for (int j = 0; j < {places.regime.packs}; ++j) {{",
        f"  const {places.regime.index} at = lane + j * {places.regime.team};",
        "  if (at < size) {",
        *(f"    {one.name}_pack[j] = {places.element(one)};" for one in places.once),
        "  }",
        "}",
    ]


def fetch(places: Places) -> list[str]:
    """Write the copies of a row to shared memory, and make those of the first row.

    The values of a row go to registers. A thread copies only what it reads itself, so no barrier is
    needed.
    """
    if not places.ahead:
        return []
    regime = places.regime
    threads = regime.team * regime.teams
    copies = [
        f"copy_async(&{one.name}_next[j * {threads} + own], &{places.element(one)});"
        for one in places.ahead
    ]
    pieces = []
    for i, one in enumerate(places.ahead):
        kind = f"Pack<{dt.storage(one.dtype)}, {regime.vector}>"
        place = f"next_rows + {i * regime.row_bytes}"
        pieces.append(f"auto* const {one.name}_next = reinterpret_cast<{kind}*>({place});")
    return [
        "extern __shared__ __align__(16) unsigned char next_rows[];",
        *pieces,
        *(f"{dt.storage(one.dtype)} {one.name}_ahead;" for one in places.rows_ahead),
        f"const unsigned own = threadIdx.y * {regime.team} + lane;",
        "const auto fetch = [&](long long first) {",
        "  if (first >= rows) return;",
        *(f"  {line}" for line in [*places.own_row("first"), *places.indices()]),
        *(f"  {places.begin(one)}" for one in (*places.ahead, *places.rows_ahead)),
        *(f"  {one.name}_ahead = {one.name}_row[0];" for one in places.rows_ahead),
        "#pragma unroll",
        f"  for (int j = 0; j < {regime.packs}; ++j) {{",
        f"    const {regime.index} at = lane + j * {regime.team};",
        "    if (at < size) {",
        *(f"      {line}" for line in copies),
        "    }",
        "  }",
        "};",
        f"fetch((long long)blockIdx.x * {regime.teams});",
    ]
