"""A loop in C over the driver's launch, with the minimum work of any launch from Python.

For kernels of as many tensors, ints and floats as recorded launches have: the driver's cost depends
on these, and not on the kernel's work.
"""

from __future__ import annotations

import ctypes
from statistics import median
from typing import TYPE_CHECKING, Any

from overhead import launch_parts
from overhead.bench import Bench
from overhead.cases import Case
from overhead.timing import Trial, run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from overhead.timing import Burst, Plan

    from libraries.launches import Launch

OVER = "native / C loop"
# Triton's kernels also take two pointers to scratch memory.
_HIDDEN = 2


def measure(
    launches: Mapping[int, Launch], bursts: Mapping[int, Burst], plan: Plan
) -> dict[int, dict[str, float]]:
    """Measure loops in C beside native launches: nanoseconds by the number of the launch.

    Each round measures both; the quotient is the median over the rounds.

    Parameters
    ----------
    launches : mapping
    bursts : mapping
        Native bursts of the same launches, on torch's current stream.
    plan : Plan
    """
    import culaunch as cl

    bench = Bench(host_only=False, cases=())
    kinds = {i: _counts(launch) for i, launch in launches.items()}
    shapes = sorted(set(kinds.values()))
    source = "\n".join(_source(*shape) for shape in shapes)
    image = bytes(cl.compile(source, arch=f"sm_{bench.capability}").data)
    library = ctypes.c_void_p()
    if code := bench.twin.twin_load(image, ctypes.byref(library)):
        raise RuntimeError(f"loading the image failed: {code}")
    trials, kept = [], []
    for shape in shapes:
        tensors, ints, floats = shape
        function = ctypes.c_void_p()
        name = _name(*shape).encode()
        if code := bench.twin.twin_function(library, name, ctypes.byref(function)):
            raise RuntimeError(f"finding {name!r} gave {code}")
        slots: list[Any] = [ctypes.c_uint64(one.data_ptr()) for one in bench.tensors[:tensors]]
        slots += [ctypes.c_int(1)] * ints + [ctypes.c_float(1)] * floats
        slots += [ctypes.c_uint64(0)] * _HIDDEN
        params = (ctypes.c_void_p * len(slots))(*(ctypes.addressof(slot) for slot in slots))
        kept.append(slots)
        case = Case(str(shapes.index(shape)), tensors, ints, floats)
        trials.append(
            Trial("C loop", case.key, launch_parts.least(bench, case, function, params, 128))
        )
    trials += [Trial("native", str(i), burst) for i, burst in bursts.items()]
    run(trials, plan, bench.synchronize)
    medians = {(one.contender, int(one.case)): one.median for one in trials if one.samples}
    found = {}
    samples = {(one.contender, int(one.case)): one.samples for one in trials}
    for i, kind in kinds.items():
        loop, native = ("C loop", shapes.index(kind)), ("native", i)
        if loop in medians and native in medians:
            pairs = zip(samples[native], samples[loop], strict=True)
            found[i] = {
                "C loop": medians[loop],
                "native": medians[native],
                OVER: median(a / b for a, b in pairs),
            }
    return found


def _counts(launch: Launch) -> tuple[int, int, int]:
    """Count the tensors, ints and floats that a launch passes."""
    constants = {one.name for one in launch.function.params if one.is_constexpr}
    names = launch.function.arg_names
    values = {**dict(zip(names, launch.args, strict=False)), **launch.kwargs}
    passed = [value for name, value in values.items() if name in names and name not in constants]
    return (
        min(sum(hasattr(one, "data_ptr") for one in passed), 20),
        sum(type(one) is int for one in passed),
        sum(type(one) is float for one in passed),
    )


def _name(tensors: int, ints: int, floats: int) -> str:
    return f"like_{tensors}_{ints}_{floats}"


def _source(tensors: int, ints: int, floats: int) -> str:
    parameters = [f"float* p{i}" for i in range(tensors + _HIDDEN)]
    parameters += [f"int i{i}" for i in range(ints)] + [f"float f{i}" for i in range(floats)]
    # In the order of the slots: the hidden pointers come last.
    order = parameters[:tensors] + parameters[tensors + _HIDDEN :]
    order += parameters[tensors : tensors + _HIDDEN]
    return f'extern "C" __global__ void {_name(tensors, ints, floats)}({", ".join(order)}) {{}}'
