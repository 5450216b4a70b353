"""Compile, inspect, load, launch, embed and ship CUDA kernels.

The names below are loaded on first use. Therefore ``import culaunch`` needs no GPU, no toolkit and
no framework, and you pay only for the parts that you use.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch import elementwise, testing, triton
    from culaunch._cache import Cache, CacheInfo
    from culaunch._cache.remote import RemoteCache
    from culaunch._compile import (
        Headers,
        compile,  # noqa: A004
        compile_many,
        fatbin,
        link,
    )
    from culaunch._doctor import Diagnosis, Finding, doctor
    from culaunch._embed import cmake_dir, embed, include_dir
    from culaunch._errors import (
        CacheWarning,
        CompileError,
        CulaunchError,
        DriverError,
        DriverNotFoundError,
        ImageError,
        InternalError,
        KernelNotFoundError,
        LaunchError,
        MissingDependencyError,
    )
    from culaunch._export import export
    from culaunch._farm import Progress, RayExecutor
    from culaunch._function import (
        Array,
        DType,
        Function,
        ceildiv,
        check,
        empty,
        empty_like,
        function,
        function_debugging,
        launch_if,
        next_power_of_2,
        same,
        zeros,
        zeros_like,
    )
    from culaunch._graph import Graph, GraphNode
    from culaunch._image import (
        Image,
        ImageInfo,
        Inspection,
        KernelInfo,
        ParamInfo,
        VariableInfo,
        inspect,
    )
    from culaunch._inline import build, build_inline, load_inline, stubs
    from culaunch._jax import JaxOperator, jax_op
    from culaunch._launch import (
        Device,
        DeviceArray,
        Event,
        GlobalVariable,
        Kernel,
        KernelAttributes,
        Launcher,
        Module,
        Occupancy,
        Parameter,
        Signature,
        Stream,
        TensorMap,
        device_count,
        devices,
        driver_name,
        graph_status,
        load,
        managed,
        pinned,
        set_driver,
        set_graphs,
        synchronize,
        to_device,
    )
    from culaunch._launch.benchmark import benchmark
    from culaunch._launch.loading import LoadedImage, LoadReport, load_report
    from culaunch._launch.peers import peer
    from culaunch._launch.texture import Surface, Texture
    from culaunch._launch.timing import Timing
    from culaunch._ship import Library, LoadedFunction, load_library, package, save
    from culaunch._ship.preload import preload
    from culaunch._torch import TorchOperator, torch_op
    from culaunch._tune import Trial, TunedConfigs, Tuning, tune

_HOME = {
    "Array": "_function",
    "Cache": "_cache",
    "CacheInfo": "_cache",
    "CacheWarning": "_errors",
    "CompileError": "_errors",
    "CulaunchError": "_errors",
    "DType": "_function",
    "Device": "_launch",
    "DeviceArray": "_launch",
    "Diagnosis": "_doctor",
    "DriverError": "_errors",
    "DriverNotFoundError": "_errors",
    "Event": "_launch",
    "Finding": "_doctor",
    "Function": "_function",
    "GlobalVariable": "_launch",
    "Graph": "_graph",
    "GraphNode": "_graph",
    "Headers": "_compile",
    "Image": "_image",
    "ImageError": "_errors",
    "ImageInfo": "_image",
    "Inspection": "_image",
    "InternalError": "_errors",
    "JaxOperator": "_jax",
    "Kernel": "_launch",
    "KernelAttributes": "_launch",
    "KernelInfo": "_image",
    "KernelNotFoundError": "_errors",
    "LaunchError": "_errors",
    "Launcher": "_launch",
    "Library": "_ship",
    "LoadReport": "_launch.loading",
    "LoadedFunction": "_ship",
    "LoadedImage": "_launch.loading",
    "MissingDependencyError": "_errors",
    "Module": "_launch",
    "Occupancy": "_launch",
    "ParamInfo": "_image",
    "Parameter": "_launch",
    "Progress": "_farm",
    "RayExecutor": "_farm",
    "RemoteCache": "_cache.remote",
    "Signature": "_launch",
    "Stream": "_launch",
    "Surface": "_launch.texture",
    "TensorMap": "_launch",
    "Texture": "_launch.texture",
    "Timing": "_launch.timing",
    "TorchOperator": "_torch",
    "Trial": "_tune",
    "TunedConfigs": "_tune",
    "Tuning": "_tune",
    "VariableInfo": "_image",
    "benchmark": "_launch.benchmark",
    "build": "_inline",
    "build_inline": "_inline",
    "ceildiv": "_function",
    "check": "_function",
    "cmake_dir": "_embed",
    "compile": "_compile",
    "compile_many": "_compile",
    "device_count": "_launch",
    "devices": "_launch",
    "doctor": "_doctor",
    "driver_name": "_launch",
    "elementwise": "elementwise",
    "embed": "_embed",
    "empty": "_function",
    "empty_like": "_function",
    "export": "_export",
    "fatbin": "_compile",
    "function": "_function",
    "function_debugging": "_function",
    "graph_status": "_launch",
    "include_dir": "_embed",
    "inspect": "_image",
    "jax_op": "_jax",
    "launch_if": "_function",
    "link": "_compile",
    "load": "_launch",
    "load_inline": "_inline",
    "load_library": "_ship",
    "load_report": "_launch.loading",
    "managed": "_launch",
    "next_power_of_2": "_function",
    "package": "_ship",
    "peer": "_launch.peers",
    "pinned": "_launch",
    "preload": "_ship.preload",
    "same": "_function",
    "save": "_ship",
    "set_driver": "_launch",
    "set_graphs": "_launch",
    "stubs": "_inline",
    "synchronize": "_launch",
    "testing": "testing",
    "to_device": "_launch",
    "torch_op": "_torch",
    "triton": "triton",
    "tune": "_tune",
    "zeros": "_function",
    "zeros_like": "_function",
}

__version__: str

__all__ = [
    "Array",
    "Cache",
    "CacheInfo",
    "CacheWarning",
    "CompileError",
    "CulaunchError",
    "DType",
    "Device",
    "DeviceArray",
    "Diagnosis",
    "DriverError",
    "DriverNotFoundError",
    "Event",
    "Finding",
    "Function",
    "GlobalVariable",
    "Graph",
    "GraphNode",
    "Headers",
    "Image",
    "ImageError",
    "ImageInfo",
    "Inspection",
    "InternalError",
    "JaxOperator",
    "Kernel",
    "KernelAttributes",
    "KernelInfo",
    "KernelNotFoundError",
    "LaunchError",
    "Launcher",
    "Library",
    "LoadReport",
    "LoadedFunction",
    "LoadedImage",
    "MissingDependencyError",
    "Module",
    "Occupancy",
    "ParamInfo",
    "Parameter",
    "Progress",
    "RayExecutor",
    "RemoteCache",
    "Signature",
    "Stream",
    "Surface",
    "TensorMap",
    "Texture",
    "Timing",
    "TorchOperator",
    "Trial",
    "TunedConfigs",
    "Tuning",
    "VariableInfo",
    "benchmark",
    "build",
    "build_inline",
    "ceildiv",
    "check",
    "cmake_dir",
    "compile",
    "compile_many",
    "device_count",
    "devices",
    "doctor",
    "driver_name",
    "elementwise",
    "embed",
    "empty",
    "empty_like",
    "export",
    "fatbin",
    "function",
    "function_debugging",
    "graph_status",
    "include_dir",
    "inspect",
    "jax_op",
    "launch_if",
    "link",
    "load",
    "load_inline",
    "load_library",
    "load_report",
    "managed",
    "next_power_of_2",
    "package",
    "peer",
    "pinned",
    "preload",
    "same",
    "save",
    "set_driver",
    "set_graphs",
    "stubs",
    "synchronize",
    "testing",
    "to_device",
    "torch_op",
    "triton",
    "tune",
    "zeros",
    "zeros_like",
]


if not TYPE_CHECKING:  # for type checkers a name that is not above is a mistake

    def __getattr__(name: str) -> object:
        home = "_core" if name == "__version__" else _HOME.get(name)
        if home is None:
            if name.startswith("__"):  # some protocol asks, and nobody reads an answer
                raise AttributeError(f"module 'culaunch' has no attribute {name!r}")
            from culaunch._base.other_words import here_it_is
            from culaunch._base.similar import did_you_mean

            hint = here_it_is("culaunch", name) or did_you_mean(name, __all__)
            raise AttributeError(f"module 'culaunch' has no attribute {name!r}{hint}")
        module = importlib.import_module(f"culaunch.{home}")
        value = module if home == name else getattr(module, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    # Names that are imported here are private.
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


if "CULAUNCH_BUNDLE" in os.environ:  # "culaunch bundle" runs the program

    def _bundle_at_exit() -> None:
        import atexit

        def write() -> None:
            from culaunch._base.bundling import kept_to_bundle

            # A program that has made nothing to pack loads nothing for it now.
            if kept_to_bundle():
                from culaunch._ship.bundled import write_used

                write_used(os.environ["CULAUNCH_BUNDLE"])

        atexit.register(write)

    _bundle_at_exit()
