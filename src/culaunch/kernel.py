"""Records of loaded kernels: signatures, attributes, occupancy, global variables."""

from culaunch._launch.launches.kernel_use import KernelAttributes, Occupancy
from culaunch._launch.modules.variable import GlobalVariable
from culaunch._launch.signatures.signature import Parameter, Signature

__all__ = [
    "GlobalVariable",
    "KernelAttributes",
    "Occupancy",
    "Parameter",
    "Signature",
]
