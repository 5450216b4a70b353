"""TVM-FFI: the call of an empty typed function, and its cubin launcher."""

from __future__ import annotations

import ctypes
import functools
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.build import build_library, cuda_include
from overhead.cases import BLOCK, GRID, Case
from overhead.timing import python_burst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from overhead.bench import Bench
    from overhead.ours import Made

EMPTY = "TVM-FFI empty call"
CUBIN_RUNTIME = "TVM-FFI cubin launcher (runtime API)"
CUBIN_DRIVER = "TVM-FFI cubin launcher (driver API)"

_TYPES = {"p": "tvm::ffi::TensorView ", "i": "int64_t ", "f": "double "}


def empty(bench: Bench) -> Callable[[Case], Made]:
    return _calls(_load(bench, "empty"), bench, None)


def cubin_runtime(bench: Bench) -> Callable[[Case], Made]:
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return _launcher(bench, "runtime")
    raise RuntimeError("found no libcudart to link with")


def cubin_driver(bench: Bench) -> Callable[[Case], Made]:
    ctypes.CDLL(bench.driver, mode=ctypes.RTLD_GLOBAL)
    return _launcher(bench, "driver")


def _launcher(bench: Bench, api: str) -> Callable[[Case], Made]:
    module = _load(bench, api)
    module.load(bench.image)
    return _calls(module, bench, bench.tensor_pointers())


def _calls(module: Any, bench: Bench, pointers: Sequence[int] | None) -> Callable[[Case], Made]:
    def make(case: Case) -> Made:
        values = [*bench.tensors[: case.pointers], *case.int_values, *case.float_values]
        arguments = dict(zip(case.names, values, strict=True))
        call = getattr(module, case.name)
        burst = python_burst(f"call({', '.join(arguments)})", call=call, **arguments)
        return burst, pointers

    return make


def _load(bench: Bench, kind: str) -> Any:
    import tvm_ffi

    return tvm_ffi.load_module(str(_libraries(bench)[kind].result()))


@functools.cache
def _libraries(bench: Bench) -> dict[str, Future[Path]]:
    """Start to compile every library at once: with 58 parameters, each takes its time."""
    import tvm_ffi

    root = Path(tvm_ffi.__file__).parent
    flags = ["-std=c++17", "-w", f"-I{root / 'include'}"]
    linked = [f"-L{root / 'lib'}", "-ltvm_ffi", f"-Wl,-rpath,{root / 'lib'}"]

    def build(kind: str) -> Path:
        if kind == "empty":
            return build_library(
                "tvm_empty.so", {"functions.cpp": _empty_source(bench)}, flags, linked
            )
        # cuda_runtime.h is in one pip package, and the headers that it includes are in another.
        cuda = f"-I{cuda_include('crt/host_config.h')}"
        api = f"-DTVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API={int(kind == 'driver')}"
        sources = {"functions.cpp": _launcher_source(bench)}
        return build_library(f"tvm_{kind}.so", sources, [*flags, cuda, api], linked)

    kinds = ("driver", "empty") if bench.host_only else ("driver", "runtime", "empty")
    pool = ThreadPoolExecutor(len(kinds))
    return {kind: pool.submit(build, kind) for kind in kinds}


def _empty_source(bench: Bench) -> str:
    source = "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/function.h>\n"
    for case in bench.cases:
        types = ", ".join(_TYPES[name[0]] for name in case.names)
        source += f"static void {case.name}({types}) {{}}\n{_export(case)}"
    return source


def _launcher_source(bench: Bench) -> str:
    source = (
        "#include <tvm/ffi/container/tensor.h>\n"
        "#include <tvm/ffi/extra/cuda/cubin_launcher.h>\n"
        "#include <tvm/ffi/function.h>\n"
        "#include <memory>\n"
        "static std::unique_ptr<tvm::ffi::CubinModule> module;\n"
        "static void load(tvm::ffi::Bytes image) {\n"
        "  module = std::make_unique<tvm::ffi::CubinModule>(image);\n"
        "}\n"
        "TVM_FFI_DLL_EXPORT_TYPED_FUNC(load, load);\n"
    )
    return source + "".join(_launch_function(case) for case in bench.cases)


def _launch_function(case: Case) -> str:
    """Write the C++ that the header's documentation shows, for one kernel."""
    params = ", ".join(_TYPES[name[0]] + name for name in case.names)
    lines = [f'  static auto kernel = module->GetKernel("{case.mangled}");']
    converted = {"p": "void* a_{0} = {0}.data_ptr();", "i": "int a_{0} = (int){0};"}
    converted["f"] = "float a_{0} = (float){0};"
    lines += ["  " + converted[name[0]].format(name) for name in case.names]
    arguments = ", ".join(f"&a_{name}" for name in case.names) or "nullptr"
    lines.append(f"  void* arguments[] = {{{arguments}}};")
    device = "p0.device()" if case.pointers else "DLDevice{kDLCUDA, 0}"
    lines.append(f"  DLDevice device = {device};")
    lines.append(
        "  auto stream = static_cast<tvm::ffi::cuda_api::StreamHandle>("
        "TVMFFIEnvGetStream(device.device_type, device.device_id));"
    )
    lines.append(
        "  TVM_FFI_CHECK_CUBIN_LAUNCHER_CUDA_ERROR(kernel.Launch(arguments, "
        f"tvm::ffi::dim3({GRID}), tvm::ffi::dim3({BLOCK}), stream));"
    )
    body = "\n".join(lines)
    return f"static void {case.name}({params}) {{\n{body}\n}}\n{_export(case)}"


def _export(case: Case) -> str:
    return f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({case.name}, {case.name});\n"
