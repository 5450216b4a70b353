"""The driver in use, and its devices."""

from culaunch._launch.device import Device, device_count, devices
from culaunch._launch.driver import driver_name, set_driver

__all__ = [
    "Device",
    "device_count",
    "devices",
    "driver_name",
    "set_driver",
]
