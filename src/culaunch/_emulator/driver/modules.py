"""The emulated driver's functions for modules, kernels, launches and occupancy."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

from culaunch._base.cuda import FunctionAttribute, Result
from culaunch._base.values import counted
from culaunch._emulator.driver.attributes import (
    MULTIPROCESSORS,
    SETTABLE,
    best_block,
    kernel_attribute,
    occupancy,
)
from culaunch._emulator.driver.image_bytes import load_ptx
from culaunch._emulator.driver.launch_config import (
    argument_names,
    array_arguments,
    beyond_views,
    explain,
    launch_request,
    named_arrays,
    parameter_bytes,
)
from culaunch._emulator.driver.state import DriverState, Kernel, Refusal
from culaunch._emulator.fault import INVALID_VALUE, NOT_FOUND, NOT_SUPPORTED, Fault
from culaunch._emulator.module import LoadedModule
from culaunch._errors import CulaunchError

if TYPE_CHECKING:
    from culaunch._emulator.driver.c_types import LaunchConfig
    from culaunch._emulator.driver.state import Arrays


class ModuleFunctions(DriverState):
    """The functions ``cuLibrary...``, ``cuKernel...``, ``cuLaunch...`` and ``cuOccupancy...``."""

    # The memory that kernels may use, for the report of another address.
    known_memory = (
        "the emulator knows only the arrays among the launch's arguments, not addresses in an int, "
        "a structure or another array. It always knows the memory of cl.empty and cl.to_device"
    )

    def cuLibraryLoadData(
        self, out: Any, code: int, jit: Any, values: Any, n: int, a: Any, b: Any, m: int
    ) -> None:
        if not code:
            raise Refusal(INVALID_VALUE, "there is no image at address 0")
        try:
            module = self.device.load(load_ptx(code, self.device.arch))
        except CulaunchError as error:
            # A DriverError contains its code. Any other error of the package comes from the text.
            raise Refusal(getattr(error, "code", 0) or Result.INVALID_PTX, str(error)) from None
        handle = self.add(module)
        self.modules[handle] = module
        out[0] = handle

    def cuLibraryUnload(self, library: int) -> None:
        self._library(library)
        # The handles of the module's kernels end with it. A launch with one is then refused as an
        # invalid handle, and does not use freed memory.
        for key in [key for key in self.kernels if key[0] == library]:
            self.remove(self.kernels.pop(key))
        module = self.modules.pop(library, None)
        if module is not None:
            self.device.unload(module)
        self.remove(library)

    def cuLibraryGetKernel(self, out: Any, library: int, name: bytes) -> None:
        out[0] = self._kernel(library, name.decode())

    def _kernel(self, library: int, name: str) -> int:
        module = self._library(library)
        handle = self.kernels.get((library, name))
        if handle is None:
            if name not in module.image.kernels:
                raise Refusal(NOT_FOUND, f"the image has no kernel {name!r}")
            handle = self.add(Kernel(module, module.image.kernel(name)))
            self.kernels[library, name] = handle
        return handle

    def cuLibraryGetKernelCount(self, out: Any, library: int) -> None:
        out[0] = len(self._library(library).image.kernels)

    def cuLibraryEnumerateKernels(self, out: Any, count: int, library: int) -> None:
        for i, name in enumerate(self._library(library).image.kernels[:count]):
            out[i] = self._kernel(library, name)

    def cuLibraryGetGlobal(self, address: Any, size: Any, library: int, name: bytes) -> None:
        module, wanted = self._library(library), name.decode()
        if wanted not in module.image.globals:
            raise Refusal(NOT_FOUND, f"the image has no variable {wanted!r}")
        if address:
            address[0] = module.address(wanted)
        if size:
            size[0] = module.size(wanted)

    def _library(self, handle: int) -> LoadedModule:
        module: LoadedModule = self.get(handle, LoadedModule)
        return module

    # -- kernels ---------------------------------------------------------------------------------

    def cuKernelGetName(self, out: Any, kernel: int) -> None:
        out[0] = self.string(self.get(kernel, Kernel).info.name)

    def cuKernelGetFunction(self, out: Any, kernel: int) -> None:
        self.get(kernel, Kernel)
        out[0] = kernel

    def cuKernelGetParamInfo(self, kernel: int, index: int, offset: Any, size: Any) -> None:
        params = self.get(kernel, Kernel).info.params
        if index >= len(params):
            raise Refusal(INVALID_VALUE, f"the kernel has {counted(len(params), 'parameter')}")
        offset[0] = params[index].offset
        if size:
            size[0] = params[index].size

    def cuKernelGetAttribute(self, out: Any, attribute: int, kernel: int, device: int) -> None:
        self.require_device(device)
        value = kernel_attribute(self.device, self.get(kernel, Kernel), attribute)
        if value is None:
            raise Refusal(INVALID_VALUE, f"there is no kernel attribute {attribute}")
        out[0] = value

    def cuKernelSetAttribute(self, attribute: int, value: int, kernel: int, device: int) -> None:
        self.require_device(device)
        found: Kernel = self.get(kernel, Kernel)
        if attribute not in SETTABLE:
            raise Refusal(INVALID_VALUE, f"kernel attribute {attribute} cannot be set")
        if attribute == FunctionAttribute.MAX_DYNAMIC_SHARED_SIZE_BYTES:
            most = self.device.max_shared - found.info.static_shared
            if not 0 <= value <= most:
                raise Refusal(
                    INVALID_VALUE,
                    f"{counted(value, 'byte')} of dynamic shared memory, but at most {most} are "
                    "available",
                )
            found.max_dynamic_shared = value
        elif attribute == FunctionAttribute.NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
            found.allows_large_clusters = bool(value)

    def cuFuncLoad(self, function: int) -> None:
        self.get(function, Kernel)

    def cuLaunchKernelEx(self, config: Any, function: int, params: Any, extra: Any) -> None:
        # A launch that was refused because of its context is repeated, with the same arrays.
        self.require_context_of(config[0].stream)
        arrays = self.noted.take()
        kernel: Kernel = self.get(function, Kernel)
        if extra:
            raise Refusal(NOT_SUPPORTED, "arguments in one buffer (extra) are not emulated")
        self.launch_kernel(config[0], kernel, parameter_bytes(kernel, params), arrays)

    def launch_kernel(
        self, config: LaunchConfig, kernel: Kernel, values: bytes, arrays: Arrays
    ) -> None:
        """Run a kernel with a complete configuration and all argument values."""
        request = launch_request(config, kernel, self.device)
        if self.device.options.observer is not None:
            self.device.options.observer.launch(array_arguments(arrays, kernel, values))
        beyond, storages = beyond_views(arrays, kernel, values), []
        if not self.device.options.check_views:
            arrays = arrays.whole()
            storages = arrays.storages
        try:
            self.device.launch(
                kernel.module,
                kernel.info.name,
                values,
                ranges=arrays.writable,
                storages=storages,
                read_only=named_arrays(arrays.read_only, kernel, values),
                beyond=beyond,
                name=argument_names(kernel, values),
                **request,
            )
        except Fault as fault:
            explain(fault, self.known_memory)
            # Later calls report the sticky fault again, with the text that was added here.
            if self.device.fault is not None:
                self.device.fault.notes = list(fault.notes)
            raise

    # -- occupancy -------------------------------------------------------------------------------

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, out: Any, function: int, threads: int, shared: int
    ) -> None:
        out[0] = occupancy(self.device, self.get(function, Kernel), threads, shared)

    def cuOccupancyMaxPotentialBlockSize(
        self, grid: Any, block: Any, function: int, to_shared: Any, shared: int, limit: int
    ) -> None:
        # A function of the caller calls this, and it may raise: the interrupt rules of `table`
        # apply to it.
        size_of = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_int)(to_shared) if to_shared else None
        threads, blocks = best_block(
            self.device, self.get(function, Kernel), size_of or (lambda _: shared), limit
        )
        block[0] = threads
        grid[0] = blocks * MULTIPROCESSORS

    def cuOccupancyMaxPotentialClusterSize(self, out: Any, function: int, config: Any) -> None:
        kernel: Kernel = self.get(function, Kernel)
        out[0] = kernel.max_cluster if self.device.has_clusters else 1

    def cuOccupancyMaxActiveClusters(self, out: Any, function: int, config: Any) -> None:
        kernel: Kernel = self.get(function, Kernel)
        request = launch_request(config[0], kernel, self.device)
        threads, cluster = math.prod(request["block"]), math.prod(request["cluster"])
        blocks = occupancy(self.device, kernel, threads, request["shared_bytes"])
        out[0] = blocks * MULTIPROCESSORS // cluster
