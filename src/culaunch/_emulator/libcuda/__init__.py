"""The emulated driver as ``libcuda.so.1``: more functions, and the names that programs ask for."""

from culaunch._emulator.libcuda.connect import connect

__all__ = ["connect"]
