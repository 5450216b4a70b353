"""Image to call: modules, kernels, launchers, devices and their arrays."""

from __future__ import annotations

from culaunch._core import Launcher, set_upcalls
from culaunch._launch import upcalls
from culaunch._launch.device import Device, device_count, devices, synchronize
from culaunch._launch.device_array import DeviceArray, empty, to_device
from culaunch._launch.driver import driver_name, set_driver
from culaunch._launch.kernel import Kernel, KernelAttributes, Occupancy
from culaunch._launch.module import GlobalVariable, Module, load
from culaunch._launch.signature import Parameter, Signature
from culaunch._launch.streams import Stream
from culaunch._launch.tensor_map import TensorMap

__all__ = [
    "Device",
    "DeviceArray",
    "GlobalVariable",
    "Kernel",
    "KernelAttributes",
    "Launcher",
    "Module",
    "Occupancy",
    "Parameter",
    "Signature",
    "Stream",
    "TensorMap",
    "device_count",
    "devices",
    "driver_name",
    "empty",
    "load",
    "set_driver",
    "synchronize",
    "to_device",
]

set_upcalls(launch=upcalls)
