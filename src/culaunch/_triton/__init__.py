"""Triton kernels (public as :mod:`culaunch.triton`)."""

from culaunch._core import set_upcalls
from culaunch._triton.aot import compile  # noqa: A004
from culaunch._triton.bodies import launcher as launcher
from culaunch._triton.calls import upcalls
from culaunch._triton.from_compiled import from_cache, from_compiled
from culaunch._triton.install import Installation, install, report, uninstall
from culaunch._triton.kernel_set import KernelSet
from culaunch._triton.native import native
from culaunch._triton.native_kernel import NativeKernel
from culaunch._triton.report import KernelReport, Report
from culaunch._triton.tensor_descriptor import TensorDescriptor

__all__ = [
    "Installation",
    "KernelReport",
    "KernelSet",
    "NativeKernel",
    "Report",
    "TensorDescriptor",
    "compile",
    "from_cache",
    "from_compiled",
    "install",
    "native",
    "report",
    "uninstall",
]

set_upcalls(triton=upcalls)
