"""How the threads of a kernel share rows and their elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from culaunch._elementwise import dtypes as dt

if TYPE_CHECKING:
    from culaunch._elementwise.graph import Node
    from culaunch._elementwise.reductions.labels import Label

COPY = 16  # bytes that a thread copies at once
COLUMNS = 32  # threads along the columns


@dataclass(frozen=True)
class Regime:
    """The choices that a kernel's source depends on, besides its computation.

    A row is what is reduced to one element. Rows are contiguous (``"row"``), or
    lie beside each other, as the columns of a matrix do (``"column"``).
    """

    kind: str
    """``"row"`` or ``"column"``."""
    vector: int
    """Elements that are loaded together: of one row, or of as many rows beside each other."""
    team: int
    """Threads that share a row, a power of 2."""
    teams: int
    """Rows, or packs of them, that a block has."""
    packs: int
    """Packs that a thread has in registers at once."""
    is_cached: bool
    """Whether these are the whole row, which is then read once."""
    is_wide: bool
    """Whether the index in a row needs 64 bits."""
    # Dimensions, after those that can be one were made one. Of columns ``kept`` leaves out the
    # dimension along which they lie.
    kept: int
    reduced: int
    step: int = -1
    """How many phases earlier kernels have computed, if several blocks share a row; -1: one kernel
    computes all."""
    blocks: int = 0
    """Blocks per multiprocessor that go from row to row; 0: each block has its own rows."""
    cluster: int = 1
    """Neighboring blocks that share a row, as one cluster."""
    is_full: bool = False
    """Whether the packs of a team are exactly a row: no index is compared with the row's size."""

    @property
    def rows(self) -> int:
        """The number of rows that a thread works on."""
        return self.vector if self.kind == "column" else 1

    @property
    def lanes(self) -> int:
        """The number of threads that share a row."""
        return self.team * self.cluster

    @property
    def row_bytes(self) -> int:
        """The bytes of one array that a block has at once, in packs of 16 bytes."""
        return self.team * self.teams * self.packs * COPY

    @property
    def index(self) -> str:
        """The C++ type of an index in a row."""
        return "unsigned long long" if self.is_wide else "unsigned"

    @property
    def suffix(self) -> str:
        """Its part of a kernel's name."""
        cached = "" if self.is_cached else "_again" if self.is_full else "_looped"
        step = "" if self.step < 0 else f"_step{self.step}"
        vector = f"_x{self.vector}" if self.vector > 1 else ""
        across = "_across" if self.blocks else ""
        cluster = f"_cluster{self.cluster}" if self.cluster > 1 else ""
        wide = "_64" if self.is_wide else "_full" if self.is_full and self.is_cached else ""
        return f"{self.kind}{self.team}{vector}{cluster}{cached}{across}{step}{wide}"


@dataclass(eq=False)
class Source:
    """An array that a kernel reads or writes."""

    name: str
    """In C++."""
    dtype: dt.DType
    node: Node
    """What it holds."""
    labels: tuple[Label | None, ...]
    """Its dimensions."""
    array: object
    """The body's array."""
    is_output: bool = False
    is_own: bool = False
    """Whether the function allocates it, in C order."""
    inner: str = "s"
    """Along the dimension of packs: ``u`` contiguous, ``z`` one element, ``s`` any stride."""


def memory_dtype(dtype: dt.DType) -> dt.DType:
    """Return the type of a partial result in memory, which is the computed type."""
    return dt.float32 if dtype.is_half else dtype
