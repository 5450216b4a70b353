"""Read PTX text: tokens, declarations and function bodies. No execution."""

from culaunch._emulator.ptx.parser import parse_module

__all__ = ["parse_module"]
