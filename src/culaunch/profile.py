"""Measure launches and the loading of images."""

from culaunch._launch.measure.benchmark import benchmark
from culaunch._launch.measure.timing import Timing
from culaunch._launch.modules.loading import LoadedImage, LoadReport, load_report

__all__ = [
    "LoadReport",
    "LoadedImage",
    "Timing",
    "benchmark",
    "load_report",
]
