"""From the library to Python: the driver of a program, and the C function for each name."""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from culaunch._base.untraced import untraced
from culaunch._emulator.control import emulate, newest_device
from culaunch._emulator.driver.c_types import prototype
from culaunch._emulator.driver.state import UNKNOWN, Refusal
from culaunch._emulator.libcuda.c_function import words_of
from culaunch._emulator.libcuda.captures import CaptureFunctions
from culaunch._emulator.libcuda.names import NO_EFFECT, NameFunctions, method_name
from culaunch._emulator.libcuda.passed_on import add_forms
from culaunch._emulator.libcuda.runtime_graphs import RuntimeGraphFunctions
from culaunch._emulator.libcuda.tensor_maps import ProgramTensorMapFunctions
from culaunch._emulator.libcuda.texture_references import TextureReferenceFunctions

if TYPE_CHECKING:
    from collections.abc import Callable

_Find = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)


class ProgramDriver(
    CaptureFunctions,
    NameFunctions,
    RuntimeGraphFunctions,
    TextureReferenceFunctions,
    ProgramTensorMapFunctions,
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

    def set_detail(self, code: int, detail: str) -> None:
        super().set_detail(code, detail)
        if code == UNKNOWN:  # a defect of the emulator, with its traceback
            _print(detail)

    def cuLibraryLoadData(self, *given: Any) -> None:
        try:
            super().cuLibraryLoadData(*given)
        except Refusal as error:
            # Programs often ignore the code: their libraries have many images.
            if error.reason not in self._unloaded:
                self._unloaded.add(error.reason)
                _print(error.reason)
            raise

    is_shared = True
    known_memory = (
        "kernels can use memory of cuMemAlloc, cuMemAllocManaged, cuMemAllocHost and "
        "cuMemHostRegister, and the variables of modules"
    )
    _printed: Any = None
    _unloaded: ClassVar[set[str]] = set()

    def find(self, name: bytes) -> int:
        """Return the C function of an exported name; 0, after a message, if there is none."""
        exported = name.decode()
        method = method_name(self, exported)
        if method is None:
            _print(
                f"{exported} is not emulated: it returns {_NOT_SUPPORTED[exported[:3] == 'cud']}"
            )
            return 0
        if method in NO_EFFECT:
            return _address(_keep(prototype(())(lambda: 0)))
        found = getattr(self, method)
        words, result = words_of(found), getattr(found, "result", ctypes.c_int)
        if not method.startswith("cu") or exported.startswith("cuda"):
            found = self._with_context(exported, found)
        if result is not ctypes.c_int:
            return _address(_keep(prototype(words, result)(self._locked(found))))
        return _address(_keep(prototype(words)(self.c_function(untraced(found)))))

    def _with_context(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make the primary context current first, in a thread without one, as the runtime does."""

        def call(*given: Any) -> Any:
            if not self.stack:
                self.cuCtxPushCurrent(self.context_handle)
            return function(*given)

        call.__name__ = name
        return call

    def _locked(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose result is no code, and which takes the lock like the others."""

        def call(*given: Any) -> Any:
            with self.lock:
                return function(*given)

        return call


add_forms(ProgramDriver)

# The code of a missing function: in the driver, in the runtime.
_NOT_SUPPORTED = ("CUDA_ERROR_NOT_SUPPORTED", "cudaErrorNotSupported")
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
