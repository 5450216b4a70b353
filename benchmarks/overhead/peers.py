"""The peers: cuda-core, CuPy, Triton, torch; each called at its best, set up outside the clock."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

from overhead.cases import BLOCK, CASES, ELEMENTS, GRID, Case
from overhead.timing import python_burst

if TYPE_CHECKING:
    from collections.abc import Callable

    from overhead.bench import Bench
    from overhead.ours import Made

CORE_RAW = "cuda-core (raw pointers)"
CORE_BUFFER = "cuda-core (Buffer)"
CUPY = "CuPy RawKernel"
TRITON_JIT = "Triton jit[grid]"
TRITON_COMPILED = "Triton compiled[grid]"
TRITON_RUN = "Triton compiled.run"
TORCH = "torch _compile_kernel"


def core_raw(bench: Bench) -> Callable[[Case], Made]:
    return _core(bench, list(bench.buffers))


def core_buffer(bench: Bench) -> Callable[[Case], Made]:
    from cuda.core import Buffer

    return _core(bench, [Buffer.from_handle(p, 4 * ELEMENTS) for p in bench.buffers])


def _core(bench: Bench, arrays: list[Any]) -> Callable[[Case], Made]:
    import numpy as np
    from cuda.core import Device, LaunchConfig, ObjectCode, Stream, launch

    device = Device(0)
    device.set_current()
    stream = Stream.from_handle(bench.stream) if bench.stream else device.create_stream()
    code = ObjectCode.from_cubin(bench.image)
    config = LaunchConfig(grid=GRID, block=BLOCK)

    def make(case: Case) -> Made:
        # A Python float would be passed as a double, and ctypes scalars are three times slower.
        # A Python int is passed in 8 bytes, and the kernel reads the low 4.
        floats = [np.float32(value) for value in case.float_values]
        names = ["stream", "config", "kernel", *case.names]
        kernel = code.get_kernel(case.mangled)
        values = [stream, config, kernel, *arrays[: case.pointers], *case.int_values, *floats]
        arguments = dict(zip(names, values, strict=True))
        burst = python_burst(f"launch({', '.join(arguments)})", launch=launch, **arguments)
        return burst, bench.buffers

    return make


def cupy_raw(bench: Bench) -> Callable[[Case], Made]:
    import cupy
    import numpy as np

    bench.use_stream_in_cupy()
    path = bench.scratch / "kernels.cubin"
    path.write_bytes(bench.image)
    module = cupy.RawModule(path=str(path))
    arrays = [cupy.zeros(ELEMENTS, dtype=np.float32) for _ in range(20)]

    def make(case: Case) -> Made:
        scalars: list[Any] = [np.int32(value) for value in case.int_values]
        scalars += [np.float32(value) for value in case.float_values]
        values = [*arrays[: case.pointers], *scalars]
        arguments = dict(zip(case.names, values, strict=True))
        listed = "".join(f"{name}, " for name in arguments)
        burst = python_burst(
            f"kernel(grid, block, ({listed}))",
            kernel=module.get_function(case.mangled),
            grid=(GRID,),
            block=(BLOCK,),
            **arguments,
        )
        return burst, [array.data.ptr for array in arrays]

    return make


def triton_jit(bench: Bench) -> Callable[[Case], Made]:
    kernels = _triton_kernels(bench)

    def make(case: Case) -> Made:
        arguments = _torch_arguments(bench, case)
        call = f"kernel[grid]({', '.join(arguments)})"
        burst = python_burst(call, kernel=kernels[case.name], grid=(GRID,), **arguments)
        return burst, bench.tensor_pointers()

    return make


def triton_compiled(bench: Bench) -> Callable[[Case], Made]:
    kernels = _triton_kernels(bench)

    def make(case: Case) -> Made:
        arguments = _torch_arguments(bench, case)
        compiled = kernels[case.name][(GRID,)](*arguments.values())
        call = f"compiled[grid]({', '.join(arguments)})"
        burst = python_burst(call, compiled=compiled, grid=(GRID, 1, 1), **arguments)
        return burst, bench.tensor_pointers()

    return make


def triton_run(bench: Bench) -> Callable[[Case], Made]:
    kernels = _triton_kernels(bench)

    def make(case: Case) -> Made:
        arguments = _torch_arguments(bench, case)
        compiled = kernels[case.name][(GRID,)](*arguments.values())
        listed = "".join(f", {name}" for name in arguments)
        burst = python_burst(
            f"run({GRID}, 1, 1, stream, function, metadata, None, None, None{listed})",
            run=compiled.run,
            stream=bench.stream,
            function=compiled.function,
            metadata=compiled.packed_metadata,
            **arguments,
        )
        return burst, bench.tensor_pointers()

    return make


def torch_compiled(bench: Bench) -> Callable[[Case], Made]:
    import torch

    def make(case: Case) -> Made:
        kernel = torch.cuda._compile_kernel(case.cuda, case.name)  # noqa: SLF001 - its only name
        arguments = _torch_arguments(bench, case)
        burst = python_burst(
            f"kernel(grid=grid, block=block, args=[{', '.join(arguments)}])",
            kernel=kernel,
            grid=(GRID, 1, 1),
            block=(BLOCK, 1, 1),
            **arguments,
        )
        return burst, bench.tensor_pointers()

    return make


def _torch_arguments(bench: Bench, case: Case) -> dict[str, Any]:
    values = [*bench.tensors[: case.pointers], *case.int_values, *case.float_values]
    return dict(zip(case.names, values, strict=True))


def _triton_kernels(bench: Bench) -> dict[str, Any]:
    """Import a generated file with every kernel: Triton reads its functions' source files."""
    import triton  # noqa: F401 - a missing Triton is reported here

    name = "overhead_triton_kernels"
    if name not in sys.modules:
        source = "import triton\nimport triton.language as tl\n\n\n"
        source += "\n\n".join(case.triton for case in CASES)
        path = bench.scratch / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return {case.name: getattr(sys.modules[name], case.name) for case in CASES}
