"""The driver in use, and its devices."""

from culaunch._launch.devices.device import Device, device_count, devices
from culaunch._launch.devices.driver import driver_name, set_driver

__all__ = [
    "Device",
    "device_count",
    "devices",
    "driver_name",
    "set_driver",
]
