"""Compiles a kernel from its element code and a layout: once, for all callers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culaunch._elementwise.cuda_source import kernel_name, render
from culaunch._launch import Device, Module
from culaunch._launch.devices.driver import current_driver

if TYPE_CHECKING:
    from culaunch._core import Driver
    from culaunch._elementwise.element_code import ElementCode
    from culaunch._elementwise.loop import Layout
    from culaunch._image import Image
    from culaunch._launch import Kernel

# By driver, architecture and source. Renaming does not change the source of a computation.
_kernels: dict[tuple[Driver, str, str], Kernel] = {}


def kernel_for(code: ElementCode, layout: Layout, ordinal: int) -> Kernel:
    """Return the kernel, compiled and loaded for a device's architecture at the first call."""
    return loaded(render(code, layout), kernel_name(code, layout), ordinal)


def loaded(source: str, name: str, ordinal: int) -> Kernel:
    """Return the kernel of a generated source."""
    driver = current_driver()
    arch = target_arch(ordinal)
    key = (driver, arch, source)
    kernel = _kernels.get(key)
    if kernel is None:
        module = Module(make_image(source, name, arch))
        # Two threads may both have compiled it. The first one is kept, and both launch it.
        kernel = _kernels.setdefault(key, module[name])
    return kernel


def make_image(source: str, name: str, arch: str) -> Image:
    """Compile a generated source, through the disk cache."""
    from culaunch._compile.compilation import (
        compile as compile_source,  # torch operators need none
    )

    return compile_source(source, arch=arch, name=f"{name}.cu")


def target_arch(ordinal: int) -> str:
    """Return the architecture to compile for a device."""
    device = Device(ordinal)
    # The emulated driver executes PTX.
    name = device.arch
    return name.replace("sm_", "compute_") if current_driver().name == "emulator" else name
