"""The first calls of Liger's operators in a fresh process."""

from __future__ import annotations

import contextlib
import cProfile
import io
import pstats
import time
from typing import TYPE_CHECKING, Any

from libraries.operators import FIRST, LIGER_OPERATORS, Inputs
from libraries.spans import Spans

if TYPE_CHECKING:
    from libraries.modes import Mode


def first_calls(way: str, mode: Mode, *, profile: bool = False) -> dict[str, Any]:
    """Call each forward and backward: seconds of all, of each, of a second round; where they went.

    Imports, the CUDA context, cuBLAS and the threads of autograd are there before.
    """
    import torch

    if way == "native":
        from culaunch.triton import install

        install()
    operators = [one for one in LIGER_OPERATORS if one.name in FIRST]
    for operator in operators:
        operator.load()
        operator.inputs(Inputs(mode.device))
    one = torch.ones(64, 64, device=mode.device, requires_grad=True)
    (one @ one).float().sum().backward()
    mode.wait()
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    spans = Spans()
    with spans.measured():
        found: dict[str, Any] = {"each": _round(operators, mode)}
    found["where"] = spans.seconds
    if profile:
        profiler.disable()
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(25)
        found["profile"] = [line.strip() for line in text.getvalue().splitlines() if line.strip()]
    found["seconds"] = sum(found["each"].values())
    found["again"] = sum(_round(operators, mode).values())
    return found


def _round(operators: Any, mode: Mode) -> dict[str, float]:
    found = {}
    for operator in operators:
        start = time.perf_counter()
        with contextlib.suppress(UnboundLocalError):  # of Liger, for a device that is not a GPU
            operator.run(mode.device)
        mode.wait()
        found[operator.name] = time.perf_counter() - start
    return found
