"""A CUDA device in Python: PTX executed on the CPU, many threads at a time, with NumPy."""

from culaunch._emulator._control import reset, with_options
from culaunch._emulator._device import Device
from culaunch._emulator._driver import make_driver
from culaunch._emulator._fault import Fault, Position
from culaunch._emulator._module import ModuleInstance, Parameter, PtxKernel, PtxModule
from culaunch._emulator._options import Options

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
