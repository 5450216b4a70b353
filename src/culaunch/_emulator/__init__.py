"""A CUDA device in Python: PTX executed on the CPU, many threads at a time, with NumPy."""

from culaunch._base.optional import optional

optional("numpy", "the emulated driver", "'culaunch[emulator]'")

from culaunch._emulator.control import make_driver, reset, with_options  # noqa: E402
from culaunch._emulator.device import Device  # noqa: E402
from culaunch._emulator.fault import Fault, Position  # noqa: E402
from culaunch._emulator.instance import ModuleInstance  # noqa: E402
from culaunch._emulator.module import Parameter, PtxKernel, PtxModule  # noqa: E402
from culaunch._emulator.options import Options  # noqa: E402

__all__ = [
    "Device",
    "Fault",
    "ModuleInstance",
    "Options",
    "Parameter",
    "Position",
    "PtxKernel",
    "PtxModule",
    "make_driver",
    "reset",
    "with_options",
]
