"""culaunch itself, and the raw twin that it is measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overhead.cases import BLOCK, ELEMENTS, GRID, Case
from overhead.timing import Burst, python_burst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overhead.bench import Bench

Made = tuple[Burst, "Sequence[int] | None"]
"""A burst, and the addresses that it passes (None: it launches nothing, so there is no check)."""

C_LOOP = "C loop"
C_LOOP_KERNEL = "C loop (over the CUkernel)"
LAUNCHER = "culaunch launcher (torch)"
SUBSCRIPT = "culaunch kernel[grid, block] (torch)"
STREAM_GIVEN = "culaunch launcher (torch, stream given)"
CUPY_ARRAYS = "culaunch launcher (CuPy)"
DEVICE_ARRAYS = "culaunch launcher (DeviceArray)"


def c_loop(bench: Bench) -> Callable[[Case], Made]:
    def make(case: Case) -> Made:
        return bench.c_loop(case, bench.buffers), bench.buffers

    return make


def c_loop_kernel(bench: Bench) -> Callable[[Case], Made]:
    """Make the C loop over the context-free handle, as the library API gives it."""

    def make(case: Case) -> Made:
        return bench.c_loop(case, bench.buffers, bench.kernel(case)), bench.buffers

    return make


def launcher(bench: Bench) -> Callable[[Case], Made]:
    module = _load(bench)

    def make(case: Case) -> Made:
        call = module[case.mangled].configure(grid=GRID, block=BLOCK)
        return _burst(call, case, bench.tensors), bench.tensor_pointers()

    return make


def stream_given(bench: Bench) -> Callable[[Case], Made]:
    module = _load(bench)

    def make(case: Case) -> Made:
        call = module[case.mangled].configure(grid=GRID, block=BLOCK, stream=bench.stream)
        return _burst(call, case, bench.tensors), bench.tensor_pointers()

    return make


def subscript(bench: Bench) -> Callable[[Case], Made]:
    module = _load(bench)

    def make(case: Case) -> Made:
        arguments = _arguments(case, bench.tensors)
        burst = python_burst(
            f"kernel[grid, block]({', '.join(arguments)})",
            kernel=module[case.mangled],
            grid=GRID,
            block=BLOCK,
            **arguments,
        )
        return burst, bench.tensor_pointers()

    return make


def cupy_arrays(bench: Bench) -> Callable[[Case], Made]:
    import cupy

    module = _load(bench)
    bench.use_stream_in_cupy()
    arrays = [cupy.zeros(ELEMENTS, dtype="float32") for _ in range(20)]

    def make(case: Case) -> Made:
        call = module[case.mangled].configure(grid=GRID, block=BLOCK)
        return _burst(call, case, arrays), [array.data.ptr for array in arrays]

    return make


def device_arrays(bench: Bench) -> Callable[[Case], Made]:
    import numpy as np

    import culaunch as cl

    module = _load(bench)
    arrays = [cl.to_device(np.zeros(ELEMENTS, np.float32)) for _ in range(20)]
    pointers = [array.address for array in arrays]

    def make(case: Case) -> Made:
        # Without a framework there is no current stream, so the common stream is passed.
        call = module[case.mangled].configure(grid=GRID, block=BLOCK, stream=bench.stream)
        return _burst(call, case, arrays), pointers

    return make


def _load(bench: Bench) -> Any:
    import culaunch as cl

    return cl.load(bench.image)


def _arguments(case: Case, arrays: Sequence[Any]) -> dict[str, Any]:
    values = [*arrays[: case.pointers], *case.int_values, *case.float_values]
    return dict(zip(case.names, values, strict=True))


def _burst(call: Any, case: Case, arrays: Sequence[Any]) -> Burst:
    arguments = _arguments(case, arrays)
    return python_burst(f"call({', '.join(arguments)})", call=call, **arguments)
