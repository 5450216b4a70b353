"""Which drivers there are, and whether their devices work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from culaunch._base.driver_choice import driver_choice
from culaunch._core import Driver
from culaunch._doctor.diagnosis import Component
from culaunch._errors import CulaunchError, DriverNotFoundError
from culaunch._launch.devices.driver import capability_of
from culaunch._launch.devices.graphs import GraphStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOPIC = "launching"
_EMULATOR = "or, without a GPU, CULAUNCH_DRIVER=emulator"


def check_drivers() -> Iterator[Component]:
    """Check the choice, NVIDIA's driver with its devices, and the emulator."""
    yield _check_choice()
    try:
        driver = Driver.open("cuda")
    except DriverNotFoundError as error:
        # A driver that exists but does not start is broken. A missing driver may be intended.
        is_there = error.name != "CUDA_ERROR_NOT_FOUND"
        reason = str(error).partition(". Install")[0]
        yield Component(
            _TOPIC,
            "CUDA driver",
            "broken" if is_there else "missing",
            reason,
            f"install NVIDIA's driver, {_EMULATOR}",
        )
    else:
        version = f"for CUDA {driver.version // 1000}.{driver.version % 1000 // 10}"
        yield Component(_TOPIC, "CUDA driver", "ok", ", ".join([version, *_kernel_module()]))
        yield Component(
            _TOPIC,
            "graphs",
            "ok",
            f"launches as executable graphs: {GraphStatus(*driver.graph_status())}",
        )
        if driver.device_count == 0:
            yield Component(_TOPIC, "devices", "missing", "the driver reports no device", _EMULATOR)
        for ordinal in range(driver.device_count):
            yield _check_device(driver, ordinal)
    yield _check_emulator()


def _check_choice() -> Component:
    try:
        choice = driver_choice()
    except ValueError as error:
        return Component(_TOPIC, "chosen driver", "broken", str(error))
    named = bool(os.environ.get("CULAUNCH_DRIVER"))
    return Component(_TOPIC, "chosen driver", "ok", f"{choice}{'' if named else ' (by default)'}")


def _check_device(driver: Driver, ordinal: int) -> Component:
    name = f"device {ordinal}"
    try:
        major, minor = capability_of(driver, ordinal)
        what = f"{driver.device_name(ordinal)}, sm_{major}{minor}"
        free, total = driver.memory_info(ordinal)  # this needs a context, which may fail
    except CulaunchError as error:
        return Component(_TOPIC, name, "broken", str(error))
    memory = f"{free / (1 << 30):.1f} of {total / (1 << 30):.1f} GiB free"
    return Component(_TOPIC, name, "ok", f"{what}, {memory}, a context can be created")


def _check_emulator() -> Component:
    try:
        import numpy as np
    except ImportError:
        return Component(
            _TOPIC, "emulator", "missing", "it needs NumPy", "python -m pip install numpy"
        )
    try:
        from culaunch._emulator import make_driver

        name = make_driver().device_name(0)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what was looked for
        return Component(_TOPIC, "emulator", "broken", f"{type(error).__name__}: {error}")
    return Component(_TOPIC, "emulator", "ok", f"{name}, NumPy {np.__version__}")


def _kernel_module() -> list[str]:
    """Return the version of the kernel's module, where Linux tells it."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            first = file.readline()
    except OSError:
        return []
    words = [word for word in first.split() if word[:1].isdigit() and "." in word]
    return [f"kernel module {words[0]}"] if words else []
