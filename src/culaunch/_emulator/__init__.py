"""A CUDA device in Python: PTX executed on the CPU, many threads at a time, with NumPy."""

from culaunch._base.optional import optional

# Before anything else of the package: its modules import NumPy at their tops. If NumPy is missing,
# this says what to install.
optional("numpy", "the emulated driver", "'culaunch[emulator]'")

from culaunch._emulator.control import (  # noqa: E402
    count_instructions,
    count_lines,
    make_driver,
    reset,
    with_options,
)
from culaunch._emulator.counting import (  # noqa: E402
    InstructionCount,
    SourceProfile,
)
from culaunch._emulator.device import Device  # noqa: E402
from culaunch._emulator.fault import Fault  # noqa: E402
from culaunch._emulator.module import LoadedModule  # noqa: E402
from culaunch._emulator.options import Options  # noqa: E402
from culaunch._emulator.ptx_image import Parameter, PtxImage, PtxKernel  # noqa: E402
from culaunch._emulator.report import Position, Related, Report  # noqa: E402
from culaunch._emulator.sarif import sarif_log, sarif_result  # noqa: E402

__all__ = [
    "Device",
    "Fault",
    "InstructionCount",
    "LoadedModule",
    "Options",
    "Parameter",
    "Position",
    "PtxImage",
    "PtxKernel",
    "Related",
    "Report",
    "SourceProfile",
    "count_instructions",
    "count_lines",
    "make_driver",
    "reset",
    "sarif_log",
    "sarif_result",
    "with_options",
]
