"""Counts of executed code, for each line of it."""

from culaunch._emulator.counting.collector import Collector
from culaunch._emulator.counting.counts import Counts
from culaunch._emulator.counting.instruction_count import InstructionCount
from culaunch._emulator.counting.source_profile import KernelCounts, LineCounts, SourceProfile

__all__ = [
    "Collector",
    "Counts",
    "InstructionCount",
    "KernelCounts",
    "LineCounts",
    "SourceProfile",
]
