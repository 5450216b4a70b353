"""Records of loaded kernels: signatures, attributes, occupancy, global variables."""

from culaunch._launch.kernel_use import KernelAttributes, Occupancy
from culaunch._launch.signature import Parameter, Signature
from culaunch._launch.variable import GlobalVariable

__all__ = [
    "GlobalVariable",
    "KernelAttributes",
    "Occupancy",
    "Parameter",
    "Signature",
]
