"""The functions of this package for the extension: ``_core.LaunchUpcalls`` has the types."""

from culaunch._base.values import spell
from culaunch._launch.arrays.allocate import allocate_like, finish_allocation, view_of
from culaunch._launch.arrays.memory import adopt as adopt_array
from culaunch._launch.arrays.memory import allocate as allocate_array
from culaunch._launch.devices.driver import choose_driver
from culaunch._launch.devices.stream_handle import stream_handle
from culaunch._launch.messages import raise_argument, raise_count
from culaunch._launch.torch.bits import find_bits
from culaunch._launch.torch.layout import find_layout
from culaunch._launch.torch.tensor import check_gradient, is_lazy, refusal

__all__ = [
    "adopt_array",
    "allocate_array",
    "allocate_like",
    "check_gradient",
    "choose_driver",
    "find_bits",
    "find_layout",
    "finish_allocation",
    "is_lazy",
    "raise_argument",
    "raise_count",
    "refusal",
    "spell",
    "stream_handle",
    "view_of",
]
