"""From image to call: modules, kernels, launchers, devices and their arrays."""

from __future__ import annotations

from culaunch._core import Launcher, set_upcalls
from culaunch._launch import upcalls
from culaunch._launch.arguments.tensor_map import TensorMap
from culaunch._launch.arrays.device_array import DeviceArray
from culaunch._launch.arrays.memory import empty, managed, pinned, to_device, zeros
from culaunch._launch.devices.device import Device, device_count, devices, synchronize
from culaunch._launch.devices.driver import driver_name, set_driver
from culaunch._launch.devices.event import Event
from culaunch._launch.devices.graphs import GraphStatus, graph_status, set_graphs
from culaunch._launch.devices.streams import Stream
from culaunch._launch.launches.kernel_use import KernelAttributes, Occupancy
from culaunch._launch.modules.load import load
from culaunch._launch.modules.module import Kernel, Module
from culaunch._launch.modules.variable import GlobalVariable
from culaunch._launch.signatures.signature import Parameter, Signature

__all__ = [
    "Device",
    "DeviceArray",
    "Event",
    "GlobalVariable",
    "GraphStatus",
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
    "graph_status",
    "load",
    "managed",
    "pinned",
    "set_driver",
    "set_graphs",
    "synchronize",
    "to_device",
    "zeros",
]

set_upcalls(launch=upcalls)
