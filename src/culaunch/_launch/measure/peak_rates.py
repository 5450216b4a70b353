"""The limits of a device: bytes and operations per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from culaunch._launch.devices.device import Device

# Float32 units of a multiprocessor by compute capability (CUDA C++ Programming Guide, "Arithmetic
# Instructions"). Newer devices have as many as the last entry.
_FLOAT32_UNITS = {70: 64, 75: 64, 80: 64, 86: 128, 87: 128, 89: 128, 90: 128}


def peak_rates(device: Device) -> dict[str, float]:
    """Return bytes and float32 operations per second, as far as the driver reports them."""
    kilohertz, width = device.attribute("memory_clock_rate"), "global_memory_bus_width"
    capability = int(device.arch.removeprefix("sm_"))
    units = _FLOAT32_UNITS.get(capability, 128)
    rate = 1e3 * device.attribute("clock_rate") * device.attribute("multiprocessor_count")
    limits = {
        "bandwidth": 2 * 1e3 * kilohertz * device.attribute(width) / 8,  # double data rate
        "flops": 2 * units * rate,  # a multiplication and an addition
    }
    return {name: value for name, value in limits.items() if value}
