"""The emulated drivers of this process, and operations for tests that CUDA does not have."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import re
from typing import TYPE_CHECKING, Any

from culaunch._core import NUMBERS, Driver
from culaunch._emulator.counting import Collector, InstructionCount
from culaunch._emulator.device import Device
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.options import OPTION_TYPES, options_from_text
from culaunch._errors import set_report_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._emulator.report import Report

__all__ = ["count_instructions", "count_lines", "make_driver", "reset", "with_options"]

# All that were made, with their tables, which C code holds for the life of the process.
_drivers: list[tuple[EmulatedDriver, dict[str, Any]]] = []


def make_driver() -> Driver:
    """Make the emulated driver.

    ``CULAUNCH_EMULATOR_ARCH`` sets its architecture, and ``CULAUNCH_EMULATOR_OPTIONS`` its checks.

    Raises
    ------
    ValueError
        If one of them is not an architecture, such as ``"sm_80"``, or not options.
    """
    arch = os.environ.get("CULAUNCH_EMULATOR_ARCH") or "sm_80"
    if not re.fullmatch(r"sm_\d{2,3}", arch):
        raise ValueError(
            f"CULAUNCH_EMULATOR_ARCH must be an architecture such as 'sm_80' (got {arch!r})"
        )
    options = options_from_text(os.environ.get("CULAUNCH_EMULATOR_OPTIONS", ""))
    driver = EmulatedDriver(Device(arch, options))
    # ctypes frees a callback together with its Python object, but the table in C++ keeps calling
    # it. Therefore the driver, which is never freed, keeps the callbacks.
    functions = driver.table()
    _drivers.append((driver, functions))
    set_report_source(_report_in)
    addresses = {
        name: ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in functions.items()
    }
    return Driver.from_functions("emulator", addresses, (NUMBERS["DLDeviceType"]["CPU"],), True)


def _report_in(message: str) -> Report | None:
    found = (driver.report_in(message) for driver, _ in _drivers)
    return next((report for report in found if report is not None), None)


def reset() -> None:
    """Make faulted devices good again; memory, modules and kernels stay as they are."""
    for driver, _ in _drivers:
        driver.reset()


@contextlib.contextmanager
def with_options(**changes: Any) -> Iterator[None]:
    """Change options of every emulated device, until the block ends.

    Raises
    ------
    TypeError
        If there is no such option.
    """
    if unknown := sorted(set(changes) - set(OPTION_TYPES)):
        raise TypeError(
            f"the emulator has no option {', '.join(unknown)}: its options are "
            f"{', '.join(OPTION_TYPES)}"
        )
    with _changed(**changes):
        yield


@contextlib.contextmanager
def count_instructions() -> Iterator[InstructionCount]:
    """Count the instructions that threads execute, in the launches of the block."""
    count = InstructionCount()
    with _changed(observer=count):
        yield count


@contextlib.contextmanager
def count_lines() -> Iterator[Collector]:
    """Count what the launches of the block execute, by the lines of their code."""
    collector = Collector()
    with _changed(observer=collector):
        yield collector


@contextlib.contextmanager
def _changed(**changes: Any) -> Iterator[None]:
    before = [(driver.device, driver.device.options) for driver, _ in _drivers]
    # Every driver of the process: which of them a launch will use is chosen elsewhere.
    for device, options in before:
        device.options = dataclasses.replace(options, **changes)
    try:
        yield
    finally:
        for device, options in before:
            device.options = options
