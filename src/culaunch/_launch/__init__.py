"""Image to call: modules, kernels, launchers, devices and their arrays."""

from __future__ import annotations

from culaunch._core import Launcher, set_upcalls
from culaunch._launch import _upcalls
from culaunch._launch._device import Device, device_count, devices, synchronize
from culaunch._launch._device_array import DeviceArray, empty, to_device
from culaunch._launch._driver import driver_name, set_driver
from culaunch._launch._kernel import Kernel, KernelAttributes, Occupancy
from culaunch._launch._module import GlobalVariable, Module, load
from culaunch._launch._signature import Parameter, Signature
from culaunch._launch._streams import Stream
from culaunch._launch._tensor_map import TensorMap

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

set_upcalls(launch=_upcalls)
