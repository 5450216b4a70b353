"""The metadata of sparse matrices A."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from culaunch._emulator.decode.decoder import Unsupported
from culaunch._emulator.fault import LAUNCH_FAILED, Fault
from culaunch._emulator.machine.rows import to_rows
from culaunch._emulator.matrix.sparse import chunk_size, invalid, nonzero, register_codes
from culaunch._emulator.ptx.syntax import Immediate

if TYPE_CHECKING:
    from culaunch._emulator.decode.decoder import Decoder
    from culaunch._emulator.machine.state import Group
    from culaunch._emulator.matrix.elements import Elements
    from culaunch._emulator.ptx.syntax import Instruction
    from culaunch._emulator.types import Lanes


class Codes(Protocol):
    """Reads the metadata of warps; with the stored elements, it accepts any for chunks of zeros."""

    def __call__(self, group: Group, stored: Elements | None = None) -> Lanes:
        """Return the metadata: (warps, 16, chunks)."""
        raise NotImplementedError


def sparsity(
    decoder: Decoder, instruction: Instruction, first: int, kind: str, depth: int
) -> Codes:
    """Return a reader of the metadata of warps: (warps, 16, chunks).

    Its register and its selector are the operands from `first` on.
    """
    metadata, choice = instruction.operands[first : first + 2]
    size = chunk_size(kind)
    chunks = depth // size
    # The lanes of each four that have metadata.
    lanes = chunks // 4
    if not isinstance(choice, Immediate) or choice.bits >= 4 // lanes:
        raise Unsupported(f"a sparsity selector that is not a constant below {4 // lanes}")
    selector, read = choice.bits, decoder.read(metadata, "b32")

    def codes(group: Group, stored: Elements | None = None) -> Lanes:
        found = register_codes(kind, chunks, selector, to_rows(group, read(group)))
        different = None if stored is None else nonzero(stored, kind)
        require_meaning(group, 32 * np.arange(found.shape[0]), found, size, different)
        return found

    return codes


def require_meaning(
    group: Group, index: Lanes, codes: Lanes, size: int, different: Lanes | None
) -> None:
    """Report metadata that names one element of a chunk twice; `index` has a thread for each A.

    `different` says which stored elements are not zero, if that is known.
    """
    wrong = invalid(codes, size, different)
    if wrong is not None:
        where, row, chunk = wrong
        raise Fault(
            LAUNCH_FAILED,
            f"the metadata of a sparse matrix is {int(codes[wrong]):#06b} for elements "
            f"{chunk * size} to {chunk * size + size - 1} of row {row}, which has no meaning",
            lane=group.lane_at(int(index[where])),
        )
