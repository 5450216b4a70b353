"""Measure launches and the loading of images."""

from culaunch._launch.benchmark import benchmark
from culaunch._launch.loading import LoadedImage, LoadReport, load_report
from culaunch._launch.timing import Timing

__all__ = [
    "LoadReport",
    "LoadedImage",
    "Timing",
    "benchmark",
    "load_report",
]
