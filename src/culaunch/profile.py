"""Profile the launches of a block, time one launch, report how images were loaded."""

from culaunch._launch.measure.benchmark import benchmark
from culaunch._launch.measure.roofline import plot_roofline
from culaunch._launch.measure.timing import Timing
from culaunch._launch.modules.loading import LoadedImage, LoadReport, load_report
from culaunch._profile.kernel_profile import KernelProfile
from culaunch._profile.launch import Launch
from culaunch._profile.profile import Profile
from culaunch._profile.recording import launches

__all__ = [
    "KernelProfile",
    "Launch",
    "LoadReport",
    "LoadedImage",
    "Profile",
    "Timing",
    "benchmark",
    "launches",
    "load_report",
    "plot_roofline",
]
