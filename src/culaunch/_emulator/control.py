"""The emulated drivers of this process, and operations for tests that CUDA does not have."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
from typing import TYPE_CHECKING, Any, TypeVar

from culaunch._base.architectures import emulated_arch
from culaunch._base.cuda import Result
from culaunch._core import NUMBERS, Driver
from culaunch._emulator.counting import Collector, InstructionCount
from culaunch._emulator.device import Device
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.fault import Fault
from culaunch._emulator.options import OPTION_TYPES, Options, options_from_text
from culaunch._errors import DriverError, set_report_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from culaunch._emulator.report import Report

_Kind = TypeVar("_Kind", bound=EmulatedDriver)

# All that were made, and their tables, which C code holds for the life of the process.
_drivers: list[EmulatedDriver] = []
_kept: list[dict[str, Any]] = []
# The changes of options in the blocks that are entered, and the options without them of devices
# that were made inside.
_changes: list[dict[str, Any]] = []
_own_options: dict[Device, Options] = {}


def make_driver() -> Driver:
    """Make the emulated driver.

    ``CULAUNCH_EMULATOR_ARCH`` sets its architecture, and ``CULAUNCH_EMULATOR_OPTIONS`` its checks.

    Raise ValueError if one of them is not an architecture, such as ``"sm_80"``, or not options.
    """
    # The program of this process may use libcuda.so.1 as well: both have the same memory.
    shared = next((driver.device for driver in _drivers if driver.is_shared), None)
    driver = emulate(EmulatedDriver, shared)
    # ctypes frees a callback together with its Python object, but the table in C++ keeps calling
    # it. Therefore the callbacks are kept.
    functions = driver.table()
    _kept.append(functions)
    addresses = {
        name: ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in functions.items()
    }
    return Driver.from_functions("emulator", addresses, (NUMBERS["DLDeviceType"]["CPU"],), True)


def emulate(kind: type[_Kind], device: Device | None) -> _Kind:
    """Make a driver of a kind, which is never freed, for a device, or for a new one without."""
    driver = kind(device or _make_device())
    _drivers.append(driver)
    set_report_source(_report_in)
    return driver


def newest_device() -> Device | None:
    """Return the device of the newest driver of this process, if there is any."""
    return _drivers[-1].device if _drivers else None


def _make_device() -> Device:
    options = options_from_text(os.environ.get("CULAUNCH_EMULATOR_OPTIONS", ""))
    device = Device(emulated_arch(), options)
    # The first launch of a process may come in a block that changes options.
    for changes in _changes:
        _own_options.setdefault(device, options)
        device.options = dataclasses.replace(device.options, **changes)
    return device


def _report_in(message: str) -> Report | None:
    found = (driver.report_in(message) for driver in _drivers)
    return next((report for report in found if report is not None), None)


def reset() -> None:
    """Make faulted devices good again; memory, modules and kernels stay as they are.

    Raise DriverError if the option ``check_leaks`` is on and blocks of malloc in kernels are not
    freed.
    """
    for driver in _drivers:
        driver.reset()
    _require_no_leaks()


@contextlib.contextmanager
def with_options(**changes: Any) -> Iterator[None]:
    """Change options of every emulated device, until the block ends.

    Raises
    ------
    TypeError
        If there is no such option.
    DriverError
        At the end of a block with ``check_leaks``, if blocks of malloc are not freed.
    """
    if unknown := sorted(set(changes) - set(OPTION_TYPES)):
        raise TypeError(
            f"the emulator has no option {', '.join(unknown)}: its options are "
            f"{', '.join(OPTION_TYPES)}"
        )
    with _changed(**changes):
        yield
        if changes.get("check_leaks"):
            _require_no_leaks()


def _require_no_leaks() -> None:
    try:
        for driver in _drivers:
            driver.device.require_no_leaks()
    except Fault as fault:
        error = DriverError(str(fault), fault.code, Result(fault.code).full_name)
        error.report = fault.report
        raise error from None


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
    before = {driver.device: driver.device.options for driver in _drivers}
    # Every driver of the process: which of them a launch will use is chosen elsewhere.
    for device, options in before.items():
        device.options = dataclasses.replace(options, **changes)
    _changes.append(changes)
    try:
        yield
    finally:
        _changes.remove(changes)
        for driver in _drivers:
            options = before.get(driver.device) or _own_options[driver.device]
            if driver.device not in before:
                for outer in _changes:
                    options = dataclasses.replace(options, **outer)
            driver.device.options = options
