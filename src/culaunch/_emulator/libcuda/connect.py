"""From the library to Python: the driver of a program, and the C function for each name."""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any

from culaunch._base.untraced import untraced
from culaunch._emulator.control import emulate, newest_device
from culaunch._emulator.driver.c_types import prototype
from culaunch._emulator.libcuda.c_function import words_of
from culaunch._emulator.libcuda.contexts import ContextFunctions
from culaunch._emulator.libcuda.memory import ProgramMemoryFunctions
from culaunch._emulator.libcuda.modules import ProgramModuleFunctions
from culaunch._emulator.libcuda.names import NO_EFFECT, NameFunctions, method_name

_Find = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)


class ProgramDriver(
    NameFunctions, ContextFunctions, ProgramMemoryFunctions, ProgramModuleFunctions
):
    """The driver of a program that knows nothing of culaunch.

    It prints each report, because the program only gets a code.
    """

    def set_report(self, code: int, report: Any) -> None:
        super().set_report(code, report)
        # Every call after a sticky fault has that fault's report again.
        fault = self.device.fault
        if fault is None or fault is not self._printed:
            self._printed = fault
            _print(str(report))

    is_shared = True
    known_memory = (
        "kernels can use memory of cuMemAlloc, cuMemAllocManaged, cuMemAllocHost and "
        "cuMemHostRegister, and the variables of modules"
    )
    _printed: Any = None

    def find(self, name: bytes) -> int:
        """Return the C function of an exported name; 0, after a message, if there is none."""
        exported = name.decode()
        method = method_name(self, exported)
        if method is None:
            _print(f"{exported} is not emulated: it returns CUDA_ERROR_NOT_SUPPORTED")
            return 0
        if method in NO_EFFECT:
            return _address(_keep(prototype(())(lambda: 0)))
        found = getattr(self, method)
        function = prototype(words_of(found))(self.c_function(untraced(found)))
        return _address(_keep(function))


_kept: list[Any] = []


def _keep(function: Any) -> Any:
    _kept.append(function)
    return function


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def connect(address: int) -> None:
    """Write the address of the C function that finds functions to a place of the library's."""
    if not _kept:
        known = newest_device()
        driver = emulate(ProgramDriver, known)
        if known is None:
            driver.device.options = dataclasses.replace(driver.device.options, write=_write)
        _keep(_Find(driver.find))
    ctypes.c_void_p.from_address(address).value = _address(_kept[0])


def _print(text: str) -> None:
    print(f"culaunch: {text}", file=sys.stderr, flush=True)  # noqa: T201 - a program has no other


def _write(text: str) -> None:
    # C's buffer, so it stays in order with the output of a program in C.
    ctypes.CDLL(None).printf(b"%s", text.encode())
