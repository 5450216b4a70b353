"""Triton's own launch on the emulated driver: its Python, and the C that it compiles.

A process that has made `OwnDriver` Triton's active driver launches there as Triton would on a GPU:
what culaunch does can be held against that.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import torch
from triton.backends.nvidia import driver as nvidia
from triton.compiler.compiler import CompiledKernel
from triton.tools.tensor_descriptor import TensorDescriptor

import culaunch as cl
from culaunch._emulator import control
from culaunch._emulator.driver.c_types import NOTE_ARRAY, NOTE_LAUNCH
from culaunch._launch.devices.driver import current_driver
from culaunch._triton.upstream import host_clock, target

FUNCTIONS = ("cuLaunchKernelEx", "cuCtxGetCurrent", "cuDevicePrimaryCtxRetain",
             "cuCtxPushCurrent", "cuGetErrorString")  # fmt: skip


def build(folder):
    """Build the libcuda.so.1 that Triton's launchers are linked with, and what compiles them."""
    library = Path(folder, "libcuda.so.1")
    source = Path(__file__).with_name("own_driver.c")
    command = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source]
    subprocess.run(command, check=True)
    compiler = Path(folder, "compiler")
    compiler.write_text('#!/bin/sh\nexec gcc "$@" -O0\n')  # Triton asks for -O3, which takes longer
    compiler.chmod(0o755)
    os.environ.update(TRITON_LIBCUDA_PATH=str(folder), CC=str(compiler))


class OwnDriver(nvidia.CudaDriver):
    """Triton's driver for NVIDIA's devices, without its queries to PyTorch about a GPU."""

    def __init__(self):
        driver = current_driver()
        driver.current_device()
        self._emulated, self._functions = control._drivers[-1], control._kept[-1]
        self._library = ctypes.CDLL(
            os.path.join(os.environ["TRITON_LIBCUDA_PATH"], "libcuda.so.1"), ctypes.RTLD_GLOBAL
        )
        addresses = [ctypes.cast(self._functions[name], ctypes.c_void_p) for name in FUNCTIONS]
        self._library.set_functions((ctypes.c_void_p * len(FUNCTIONS))(*addresses))
        self._properties = target.StandIn.of_device(driver, 0).get_device_properties
        self._texts, self._modules = {}, []
        self.utils = self
        self._note_texts()

    def _note_texts(self):
        """Keep the PTX of every compiled kernel, by its cubin: the emulator runs that."""
        made, texts = CompiledKernel.__init__, self._texts

        def init(kernel, *args):
            made(kernel, *args)
            texts[kernel.kernel] = kernel.asm["ptx"]

        CompiledKernel.__init__ = init

    # ---- what Triton asks

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_device_capability(self, device=0):
        return 8, 0

    def get_benchmarker(self):
        return host_clock.time_once

    def get_device_properties(self, device):
        return self._properties(device)

    def load_binary(self, name, image, shared, device):
        module = cl.load(self._texts[image].encode())
        self._modules.append(module)
        kernel = module[name]
        # What Triton's own does for kernels that need more than others may have.
        if shared > 48 << 10:
            assert self._functions["cuKernelSetAttribute"](8, shared, kernel.handle, device) == 0
        return kernel.handle, kernel.handle, 32, 0, 1024

    def launcher_cls(self, source, metadata):
        launcher = nvidia.CudaLauncher(source, metadata)

        def launch(*args):
            if not self._emulated.stack:
                self._emulated.stack.append(self._emulated.context_handle)
            self._emulated.note_array(None, 0, NOTE_LAUNCH)
            for one in args:
                self._note(one)
            return launcher(*args)

        return launch

    def _note(self, value):
        """Tell the emulator of memory that it has not allocated."""
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            self._emulated.note_array(storage.data_ptr(), storage.nbytes(), NOTE_ARRAY)
        elif isinstance(value, tuple):
            for item in value:
                self._note(item)
        elif isinstance(value, TensorDescriptor):
            self._note(value.base)
