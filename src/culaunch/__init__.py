"""Compile, inspect, load, launch, embed and ship CUDA kernels.

The names below are loaded on first use. Therefore ``import culaunch`` needs no GPU, no toolkit and
no framework, and you pay only for the parts that you use.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

from culaunch._base.rooms_above import connect as _connect

if TYPE_CHECKING:
    from culaunch import (
        arguments,
        cache,
        compiling,
        cpp,
        driver,
        elementwise,
        frameworks,
        graph,
        image,
        kernel,
        machine,
        profile,
        ship,
        testing,
        triton,
        tuning,
    )
    from culaunch._compile.compilation import compile  # noqa: A004
    from culaunch._compile.linking import link
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
    from culaunch._function import (
        Array,
        DType,
        Function,
        ceildiv,
        check,
        dtype_of,
        empty,
        empty_like,
        function,
        function_debugging,
        launch_if,
        next_power_of_2,
        zeros,
        zeros_like,
    )
    from culaunch._graph import Graph
    from culaunch._image import Image, inspect
    from culaunch._launch import (
        DeviceArray,
        Event,
        Kernel,
        Launcher,
        Module,
        Stream,
        load,
        managed,
        pinned,
        synchronize,
        to_device,
    )

_HOME = {
    "Array": "_function",
    "CacheWarning": "_errors",
    "CompileError": "_errors",
    "CulaunchError": "_errors",
    "DType": "_function",
    "DeviceArray": "_launch",
    "DriverError": "_errors",
    "DriverNotFoundError": "_errors",
    "Event": "_launch",
    "Function": "_function",
    "Graph": "_graph",
    "Image": "_image",
    "ImageError": "_errors",
    "InternalError": "_errors",
    "Kernel": "_launch",
    "KernelNotFoundError": "_errors",
    "LaunchError": "_errors",
    "Launcher": "_launch",
    "MissingDependencyError": "_errors",
    "Module": "_launch",
    "Stream": "_launch",
    "arguments": "arguments",
    "cache": "cache",
    "ceildiv": "_function",
    "check": "_function",
    "compile": "_compile.compilation",
    "compiling": "compiling",
    "cpp": "cpp",
    "driver": "driver",
    "dtype_of": "_function",
    "elementwise": "elementwise",
    "empty": "_function",
    "empty_like": "_function",
    "frameworks": "frameworks",
    "function": "_function",
    "function_debugging": "_function",
    "graph": "graph",
    "image": "image",
    "inspect": "_image",
    "kernel": "kernel",
    "launch_if": "_function",
    "link": "_compile.linking",
    "load": "_launch",
    "machine": "machine",
    "managed": "_launch",
    "next_power_of_2": "_function",
    "pinned": "_launch",
    "profile": "profile",
    "ship": "ship",
    "synchronize": "_launch",
    "testing": "testing",
    "to_device": "_launch",
    "triton": "triton",
    "tuning": "tuning",
    "zeros": "_function",
    "zeros_like": "_function",
}

__version__: str

__all__ = [
    "Array",
    "CacheWarning",
    "CompileError",
    "CulaunchError",
    "DType",
    "DeviceArray",
    "DriverError",
    "DriverNotFoundError",
    "Event",
    "Function",
    "Graph",
    "Image",
    "ImageError",
    "InternalError",
    "Kernel",
    "KernelNotFoundError",
    "LaunchError",
    "Launcher",
    "MissingDependencyError",
    "Module",
    "Stream",
    "arguments",
    "cache",
    "ceildiv",
    "check",
    "compile",
    "compiling",
    "cpp",
    "driver",
    "dtype_of",
    "elementwise",
    "empty",
    "empty_like",
    "frameworks",
    "function",
    "function_debugging",
    "graph",
    "image",
    "inspect",
    "kernel",
    "launch_if",
    "link",
    "load",
    "machine",
    "managed",
    "next_power_of_2",
    "pinned",
    "profile",
    "ship",
    "synchronize",
    "testing",
    "to_device",
    "triton",
    "tuning",
    "zeros",
    "zeros_like",
]


def _open_emulator() -> object:
    from culaunch import _emulator

    return _emulator


def _open_jax() -> object:
    from culaunch import _jax

    return _jax


def _open_torch() -> object:
    from culaunch._torch import unregistered

    return unregistered


# Rooms below call these rooms, which they must not import: only this place knows both.
_connect(emulator=_open_emulator, jax=_open_jax, torch=_open_torch)

if not TYPE_CHECKING:  # for type checkers a name that is not above is a mistake

    def __getattr__(name: str) -> object:
        home = "_core" if name == "__version__" else _HOME.get(name)
        if name == "load_ipython_extension":  # IPython asks for it, and nobody else
            home = "_notebook"
        if home is None:
            if name.startswith("__"):  # a protocol asks, and does not show the message
                raise AttributeError(f"module 'culaunch' has no attribute {name!r}")
            from culaunch._base.other_words import suggestion
            from culaunch._base.similar import did_you_mean

            hint = suggestion("culaunch", name) or did_you_mean(name, __all__)
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
                from culaunch._ship.saving.bundled import write_used

                write_used(os.environ["CULAUNCH_BUNDLE"])

        atexit.register(write)

    _bundle_at_exit()
