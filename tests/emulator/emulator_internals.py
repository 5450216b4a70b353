"""Internal names of the emulator that several of its tests use."""

from culaunch._base.cuda import (
    ConditionalType,
    DeviceAttribute,
    GraphNodeType,
    LaunchAttribute,
    Result,
)
from culaunch._emulator import (
    Device,
    Fault,
    InstructionCount,
    LoadedModule,
    Options,
    Position,
    PtxImage,
    kernel_code,  # it defines the instructions
    matrix,
    numerics,
)
from culaunch._emulator.compiled.engine import CompiledKernel, compiled_kernel
from culaunch._emulator.decode.instruction import INSTRUCTIONS, computes, decodes, definition
from culaunch._emulator.driver.c_types import (
    ERRORS,
    NOTE_ARRAY,
    NOTE_FUNCTION,
    NOTE_LAUNCH,
    LaunchConfig,
    prototype,
)
from culaunch._emulator.driver.table import EmulatedDriver
from culaunch._emulator.libcuda.c_function import words_of
from culaunch._emulator.libcuda.connect import ProgramDriver
from culaunch._emulator.machine.state import Group, Op
from culaunch._emulator.memory.read_only import NamedArray
from culaunch._emulator.options import options_from_text
from culaunch._emulator.ptx.syntax import Instruction
from culaunch._emulator.types import Lanes
from culaunch._emulator.undefined import engine, memory_rules

__all__ = [
    "ERRORS",
    "INSTRUCTIONS",
    "NOTE_ARRAY",
    "NOTE_FUNCTION",
    "NOTE_LAUNCH",
    "CompiledKernel",
    "ConditionalType",
    "Device",
    "DeviceAttribute",
    "EmulatedDriver",
    "Fault",
    "GraphNodeType",
    "Group",
    "Instruction",
    "InstructionCount",
    "Lanes",
    "LaunchAttribute",
    "LaunchConfig",
    "LoadedModule",
    "NamedArray",
    "Op",
    "Options",
    "Position",
    "ProgramDriver",
    "PtxImage",
    "Result",
    "compiled_kernel",
    "computes",
    "decodes",
    "definition",
    "engine",
    "kernel_code",
    "matrix",
    "memory_rules",
    "numerics",
    "options_from_text",
    "prototype",
    "words_of",
]
