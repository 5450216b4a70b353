"""The functions of this package that the extension calls: ``_core.LaunchUpcalls`` has the types."""

from culaunch._base.values import spell
from culaunch._launch.allocate import allocate_like, finish_allocation, view_of
from culaunch._launch.driver import choose_driver
from culaunch._launch.memory import adopt as adopt_array
from culaunch._launch.memory import allocate as allocate_array
from culaunch._launch.messages import raise_argument, raise_count
from culaunch._launch.stream_handle import stream_handle
from culaunch._launch.torch_bits import find_bits
from culaunch._launch.torch_layout import find_layout
from culaunch._launch.torch_tensor import check_gradient, is_lazy, refusal

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
