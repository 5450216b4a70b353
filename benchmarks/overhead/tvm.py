"""TVM-FFI: the call of an empty typed function, and its cubin launcher."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.build import build_library, cuda_include
from overhead.cases import BLOCK, GRID, Case
from overhead.timing import python_burst

if TYPE_CHECKING:
    from collections.abc import Callable

    from overhead.bench import Bench
    from overhead.ours import Made

EMPTY = "TVM-FFI empty call"
CUBIN_RUNTIME = "TVM-FFI cubin launcher (runtime API)"
CUBIN_DRIVER = "TVM-FFI cubin launcher (driver API)"

_TYPES = {"p": "tvm::ffi::TensorView ", "i": "int64_t ", "f": "double "}


def empty(bench: Bench) -> Callable[[Case], Made]:
    source = "#include <tvm/ffi/container/tensor.h>\n#include <tvm/ffi/function.h>\n"
    for case in bench.cases:
        types = ", ".join(_TYPES[name[0]] for name in case.names)
        source += f"static void {case.name}({types}) {{}}\n{_export(case)}"
    module = _build("tvm_empty.so", source)

    def make(case: Case) -> Made:
        return _call(module, case, bench), None

    return make


def cubin_runtime(bench: Bench) -> Callable[[Case], Made]:
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return _launcher(bench, use_driver=False)
    raise RuntimeError("no libcudart to link with")


def cubin_driver(bench: Bench) -> Callable[[Case], Made]:
    ctypes.CDLL(bench.driver, mode=ctypes.RTLD_GLOBAL)
    return _launcher(bench, use_driver=True)


def _launcher(bench: Bench, *, use_driver: bool) -> Callable[[Case], Made]:
    source = (
        f"#define TVM_FFI_CUBIN_LAUNCHER_USE_DRIVER_API {int(use_driver)}\n"
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
    source += "".join(_launch_function(case) for case in bench.cases)
    # cuda_runtime.h is in one package of pip's, and what it includes in another.
    folders = [f"-I{cuda_include('crt/host_config.h')}"]
    module = _build(f"tvm_cubin_{'driver' if use_driver else 'runtime'}.so", source, folders)
    module.load(bench.image)

    def make(case: Case) -> Made:
        return _call(module, case, bench), bench.tensor_pointers()

    return make


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


def _build(name: str, source: str, flags: list[str] | None = None) -> Any:
    import tvm_ffi

    root = Path(tvm_ffi.__file__).parent
    library = build_library(
        name,
        {"functions.cc": source},
        ["-std=c++17", "-w", f"-I{root / 'include'}", *(flags or [])],
        [f"-L{root / 'lib'}", "-ltvm_ffi", f"-Wl,-rpath,{root / 'lib'}"],
    )
    return tvm_ffi.load_module(str(library))


def _call(module: Any, case: Case, bench: Bench) -> Any:
    values = [*bench.tensors[: case.pointers], *case.int_values, *case.float_values]
    arguments = dict(zip(case.names, values, strict=True))
    function = getattr(module, case.name)
    return python_burst(f"call({', '.join(arguments)})", call=function, **arguments)
