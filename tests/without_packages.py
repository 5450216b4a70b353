"""Call every public name where no optional package is installed; print what each raised.

A program of its own: what is imported cannot be taken away again.
"""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import traceback
import types

BLOCKED = {
    "click", "cryptography", "cuda", "cupy", "fsspec", "jax", "lz4", "matplotlib", "ml_dtypes",
    "numba", "numpy", "nvidia", "ray", "rich", "torch", "triton", "tvm_ffi", "zstandard",
}  # fmt: skip


class Blocker:
    """Says of each package that it is not there, as an import does."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocker())

import culaunch as cl  # noqa: E402
import culaunch.elementwise as ew  # noqa: E402
import culaunch.triton as triton  # noqa: E402
from culaunch import testing  # noqa: E402

FOLDER = pathlib.Path(tempfile.mkdtemp())
os.environ["CULAUNCH_CACHE_DIR"] = str(FOLDER / "cache")
PTX = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
CUDA = "__global__ void k() {}"


class Tensor:
    """An object that looks like a torch tensor by its type's module."""

    dtype = "torch.bfloat16"

    def detach(self):
        return self

    cpu = clone = detach


Tensor.__module__ = "torch"


def kernel(x):
    return x


def timed():
    return cl.profile.Timing("k", "d", (1.0,), False, False, 1e6, 1e6, 1e12, 1e13)


def enter(manager):
    with manager:
        pass


CALLS = {
    "cl.cache.Cache": lambda: cl.cache.Cache().info(),
    "cl.driver.Device": lambda: cl.driver.Device(0).name,
    "cl.DeviceArray": lambda: cl.DeviceArray((3,), "float32", None),
    "cl.compiling.Headers": lambda: cl.compiling.Headers({"a.h": ""}),
    "cl.Image": lambda: cl.Image(PTX).kernels,
    "cl.Module": lambda: cl.Module(cl.Image(PTX)),
    "cl.Stream": lambda: cl.Stream(),
    "cl.arguments.TensorMap": lambda: cl.arguments.TensorMap.tiled(3, box=(1,)),
    "cl.compiling.Progress": lambda: cl.compiling.Progress(1, 2, 0, 1.0).remaining,
    "cl.profile.load_report": lambda: str(cl.profile.load_report()),
    "cl.arguments.peer_array": lambda: cl.arguments.peer_array([1.0]),
    "cl.ship.preload": lambda: cl.ship.preload(cl.Image(PTX)),
    "cl.compiling.RayExecutor": lambda: cl.compiling.RayExecutor(),
    "cl.cache.RemoteCache": lambda: cl.cache.Cache(
        remote=cl.cache.RemoteCache("file:///nowhere")
    ).info(),
    "cl.cache.RemoteCache keys": lambda: cl.cache.RemoteCache("s3://b", keys="RW" + "A" * 54),
    "cl.cpp.cmake_dir": lambda: cl.cpp.cmake_dir(),
    "cl.compile": lambda: cl.compile(CUDA, arch="sm_80", cache=False),
    "cl.compile nvcc": lambda: cl.compile(CUDA, arch="sm_80", cache=False, backend="nvcc"),
    "cl.compiling.compile_many": lambda: cl.compiling.compile_many([CUDA], arch="sm_80"),
    "cl.compiling.compile_many progress": lambda: cl.compiling.compile_many(
        [CUDA], arch="sm_80", progress=True
    ),
    "cl.cpp.build": lambda: cl.cpp.build("m", __file__),
    "cl.cpp.build_inline": lambda: cl.cpp.build_inline("m", "int x;"),
    "cl.driver.device_count": lambda: cl.driver.device_count(),
    "cl.driver.devices": lambda: cl.driver.devices(),
    "cl.driver.driver_name": lambda: cl.driver.driver_name(),
    "cl.cpp.embed": lambda: cl.cpp.embed(PTX, FOLDER / "k.o", "k"),
    "cl.empty": lambda: cl.empty(3, "float32"),
    "cl.compiling.fatbin": lambda: cl.compiling.fatbin([PTX]),
    "cl.Graph": lambda: enter(cl.Graph()),
    "cl.graph.graph_status": lambda: cl.graph.graph_status(),
    "cl.graph.set_graphs": lambda: cl.graph.set_graphs("auto"),
    "cl.cpp.include_dir": lambda: cl.cpp.include_dir(),
    "cl.inspect": lambda: cl.inspect(PTX),
    "cl.link": lambda: cl.link(PTX, arch="sm_80"),
    "cl.load": lambda: cl.load(PTX),
    "cl.cpp.load_inline": lambda: cl.cpp.load_inline("m", "int x;"),
    "cl.driver.set_driver": lambda: cl.driver.set_driver("emulator"),
    "cl.cpp.stubs": lambda: cl.cpp.stubs(__file__),
    "cl.synchronize": lambda: cl.synchronize(),
    "cl.Event": lambda: cl.Event(),
    "cl.arguments.Surface": lambda: cl.arguments.Surface([1.0]),
    "cl.arguments.Texture": lambda: cl.arguments.Texture([1.0]),
    "cl.profile.launches": lambda: enter(cl.profile.launches()),
    "cl.profile.plot_roofline": lambda: cl.profile.plot_roofline([timed()]),
    "cl.profile.benchmark": lambda: cl.profile.benchmark(kernel),
    "cl.tuning.tune": lambda: cl.tuning.tune(int, [{}]),
    "cl.tuning.TunedConfigs": lambda: cl.tuning.TunedConfigs(),
    "cl.tuning.Trial": lambda: cl.tuning.Trial({}),
    "cl.tuning.Tuning": lambda: cl.tuning.Tuning("k", "d", (), "", []),
    "cl.ceildiv": lambda: cl.ceildiv(7, 2),
    "cl.check": lambda: cl.check(True, "it is"),
    "cl.machine.doctor": lambda: cl.machine.doctor(),
    "cl.empty_like": lambda: cl.empty_like([1]),
    "cl.function": lambda: cl.function(kernel)(1),
    "cl.function_debugging": lambda: enter(cl.function_debugging()),
    "cl.launch_if": lambda: cl.launch_if(True, kernel),
    "cl.ship.load_library": lambda: cl.ship.load_library(FOLDER / "none.culib"),
    "cl.ship.export": lambda: cl.ship.export([], FOLDER / "none.so"),
    "cl.frameworks.jax_op": lambda: cl.frameworks.jax_op(cl.function(kernel)),
    "cl.frameworks.torch_op": lambda: cl.frameworks.torch_op("mylib::k", cl.function(kernel)),
    "cl.ship.save": lambda: cl.ship.save([], FOLDER / "none.culib"),
    "cl.managed": lambda: cl.managed(3),
    "cl.next_power_of_2": lambda: cl.next_power_of_2(3),
    "cl.ship.package": lambda: cl.ship.package(FOLDER / "none.culib", name="k", version="1.0"),
    "cl.pinned": lambda: cl.pinned(3),
    "cl.zeros": lambda: cl.zeros(3),
    "cl.zeros_like": lambda: cl.zeros_like([1]),
    "cl.to_device": lambda: cl.to_device([1]),
    "testing.assert_allclose": lambda: testing.assert_allclose([1], [1]),
    "testing.assert_allclose bfloat16": lambda: testing.assert_allclose(Tensor(), Tensor()),
    "testing.emulator_options": lambda: enter(testing.emulator_options(time_limit=1.0)),
    "testing.count_instructions": lambda: enter(testing.count_instructions()),
    "testing.profile": lambda: testing.profile(lambda: None),
    "testing.for_each_seed": lambda: testing.for_each_seed(lambda: None, seeds=1),
    "testing.from_driver": lambda: testing.from_driver([1]),
    "testing.has_gpu": lambda: testing.has_gpu(),
    "testing.c_driver": lambda: testing.c_driver(FOLDER / "driver"),
    "testing.reset_emulator": lambda: testing.reset_emulator(),
    "testing.to_driver": lambda: testing.to_driver([1]),
    "testing.write_sarif": lambda: testing.write_sarif(FOLDER / "none.sarif", []),
    "testing.use_driver": lambda: enter(testing.use_driver("emulator")),
    "ew.fuse": lambda: ew.fuse(kernel)(1.0),
    "ew.kernel": lambda: ew.kernel("T x", "T y", "y = x")(1.0),
    "triton.compile": lambda: triton.compile(kernel, "i32", arch="sm_80"),
    "triton.native": lambda: triton.native(kernel),
    "triton.from_cache": lambda: triton.from_cache(FOLDER / "none", "i32"),
    "triton.install": lambda: triton.install(),
    "triton.report": lambda: triton.report(),
    "triton.uninstall": lambda: triton.uninstall(),
    "triton.TensorDescriptor": lambda: triton.TensorDescriptor(Tensor(), [8], [1], [8]),
    "triton.KernelSet": lambda: triton.KernelSet.load(FOLDER / "none.culib"),
}
MODULES = {"cl": cl, "ew": ew} | {
    name if name in ("testing", "triton") else f"cl.{name}": getattr(cl, name)
    for name in cl.__all__
    if isinstance(getattr(cl, name), types.ModuleType) and name != "elementwise"
}
# Results of other calls, exceptions, and names for use inside traced functions only.
NOT_CALLED = {
    "CacheInfo", "GlobalVariable", "ImageInfo", "Inspection", "Kernel", "KernelAttributes",
    "KernelInfo", "Launcher", "NativeKernel", "Occupancy", "ParameterInfo", "Parameter",
    "Signature", "JaxOperator", "from_compiled", "GraphStatus",
    "Array", "DType", "Library", "LoadReport", "LoadedFunction", "LoadedImage", "Diagnosis",
    "Component", "Function", "GraphBody", "GraphCondition", "GraphNode", "KernelProfile",
    "Launch", "Profile", "Timing",
    "VariableInfo", "TorchOperator", "dtype_of",
    "Installation", "KernelReport", "Report",
}  # fmt: skip


def main():
    found = {}
    for name, call in CALLS.items():
        try:
            with contextlib.redirect_stdout(sys.stderr):
                call()
            found[name] = ["", ""]
        except Exception as error:  # noqa: BLE001
            found[name] = [type(error).__name__, str(error)]
            if "-v" in sys.argv:
                traceback.print_exc()
    called = {name.split()[0] for name in CALLS}
    missed = [
        f"{short}.{name}"
        for short, module in MODULES.items()
        for name in module.__all__
        if f"{short}.{name}" not in called
        and name not in NOT_CALLED
        and not isinstance(getattr(module, name), types.ModuleType)
        and not name.endswith(("Error", "Warning"))
        and short != "ew"
    ]
    print(json.dumps({"found": found, "missed": missed}))


main()
