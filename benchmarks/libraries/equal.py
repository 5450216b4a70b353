"""Whether an operator gives the same bits in either way."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libraries.launches import Ways
    from libraries.modes import Mode
    from libraries.operators import Operator

EQUAL, RAN = "equal", "ran"


def compare(operator: Operator, ways: Ways, mode: Mode) -> dict[str, Any]:
    """Run an operator in both ways, forward and backward, and return the differences.

    Two runs of each way alternate. Results that differ between two runs of Triton, because of
    atomic additions, say nothing and are counted separately.

    Returns
    -------
    dict
        "said": "equal", or the difference. "native" and "triton": how many launches of the native
        runs went each way. "reasons": why some went to Triton.
    """
    import torch

    from culaunch.triton import report

    if mode.runs:
        # Memory that a kernel leaves unwritten is NaN in every run, not the old contents.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
    backward, without = _can_go_backward(operator, ways, mode)
    ways.use("native")
    operator.run(mode.device, backward=backward)
    report(clear=True)
    runs: dict[str, list[list[Any]]] = {"Triton": [], "native": []}
    for way in ("native", "Triton") * 2 if mode.runs else ("native",):
        ways.use(way)
        runs[way].append(operator.run(mode.device, backward=backward))
    mode.wait()
    found = report()
    return {
        "said": (_said(runs["Triton"], runs["native"]) if mode.runs else RAN) + without,
        "native": found.native,
        "triton": found.triton,
        "reasons": {
            f"{one.name}: {why}": n for one in found.kernels for why, n in one.reasons.items()
        },
        "notes": [f"{one.name}: {note}" for one in found.kernels for note in one.notes],
    }


def _can_go_backward(operator: Operator, ways: Ways, mode: Mode) -> tuple[bool, str]:
    """Say whether Triton's way can; it compiles and tunes in any case."""
    ways.use("Triton")
    try:
        operator.run(mode.device)
    except Exception as error:  # noqa: BLE001 - then only forward, or its exception
        operator.run(mode.device, backward=False)
        return False, f" (only forward; backward raises {type(error).__name__}: {error}"[:120] + ")"
    return True, ""


def _said(by_triton: list[list[Any]], native: list[list[Any]]) -> str:
    first, second = by_triton
    steady = [i for i in range(len(first)) if _same(first[i], second[i])]
    wrong = [i for i in steady if not all(_same(first[i], run[i]) for run in native)]
    said = f"{len(wrong)} of {len(steady)} differ: {wrong}" if wrong else EQUAL
    if unsteady := len(first) - len(steady):
        said += f" ({unsteady} of {len(first)} differ between two runs of Triton)"
    return said


def _same(one: Any, other: Any) -> bool:
    import torch

    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

    def bits(tensor: Any) -> Any:
        return tensor.detach().contiguous().view(kinds[tensor.element_size()])

    return one.shape == other.shape and torch.equal(bits(one), bits(other))
